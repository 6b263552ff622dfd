import { errorText } from '../src/cli/run.ts'
import { HooktideError } from '../src/core/error.ts'
import { drip } from './drip.ts'
import { guard, sign } from './endpoint-costs.ts'
import { fanout } from './fanout.ts'
import { benchFilter } from './filter.ts'
import { checkGate, saveGate } from './gate.ts'
import { head } from './head.ts'
import { ingest } from './ingest.ts'
import { latency } from './latency.ts'
import { lateness } from './lateness.ts'
import { load, machine } from './machine.ts'
import { match } from './match-index.ts'
import { memoryScenario } from './memory-scenario.ts'
import { mix } from './mix.ts'
import { monoMs } from './mono.ts'
import { noisy } from './noisy.ts'
import { readOptions } from './options.ts'
import { outage } from './outage.ts'
import { machineText, scenarioText } from './print.ts'
import { profile, profileText } from './profile.ts'
import { rebuildBroker } from './rebuild-broker.ts'
import { replay } from './replay.ts'
import type { ScenarioResult } from './result.ts'
import { backlog, scale } from './scale.ts'
import type { Scenario, Settings } from './scenario.ts'
import { scheduled } from './scheduled.ts'
import { benchState } from './state.ts'
import { throughput } from './throughput.ts'
import { tls } from './tls-failures.ts'
import { Stage } from './world.ts'

const scenarios: readonly Scenario[] = [
  throughput,
  latency,
  mix,
  backlog,
  fanout,
  memoryScenario,
  lateness,
  noisy,
  outage,
  head,
  scheduled,
  replay,
  rebuildBroker,
  drip,
  ingest,
  guard,
  sign,
  match,
  tls,
  scale,
]

/** The suite: every scenario beside its reference in one run. Results on stdout, progress on stderr. */
async function main(): Promise<number> {
  // Needs no broker.
  if (process.argv[2] === 'filter') return benchFilter((line) => void process.stdout.write(`${line}\n`)) ? 0 : 1
  if (process.argv[2] === 'rebuild' || process.argv[2] === 'search') {
    const print = (line: string) => void process.stdout.write(`${line}\n`)
    return (await benchState(process.argv[2], Number(process.argv[3] ?? 500_000), print)) ? 0 : 1
  }
  const options = readOptions(process.argv.slice(2), [...scenarios.map(({ name }) => name), 'profile'])
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`)
    return 2
  }
  const note = (line: string) => void process.stderr.write(`${line}\n`)
  const chosen = scenarios.filter(({ name }) => options.scenarios.includes(name))
  if (chosen.length > 0 && chosen.every(({ bare }) => bare) && !options.scenarios.includes('profile')) {
    const results: ScenarioResult[] = []
    for (const scenario of chosen) {
      results.push(await measured(scenario, null as never, { ...options, patienceMs: 150_000, note }))
      if (!options.json) process.stdout.write(`\n${scenarioText(results.at(-1) as ScenarioResult)}\n`)
    }
    if (options.json) process.stdout.write(`${JSON.stringify({ machine: machine(), results }, null, 2)}\n`)
    return 0
  }
  const stage = await Stage.open(note, options.nodeFlags)
  // Children are killed by the exit handler of children.ts.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stage.close().finally(() => process.exit(130)))
  }
  const results: ScenarioResult[] = []
  const failed: string[] = []
  try {
    const { broker } = stage
    const brokerText = `${broker.kind}${broker.pid === undefined ? ' (its CPU can not be seen)' : ''}`
    if (!options.json) process.stdout.write(`${machineText(machine(), brokerText)}\n`)
    for (const scenario of chosen) {
      try {
        results.push(await measured(scenario, stage, { ...options, patienceMs: 150_000, note }))
        if (!options.json) process.stdout.write(`\n${scenarioText(results.at(-1) as ScenarioResult)}\n`)
      } catch (error) {
        failed.push(scenario.name)
        note(`${scenario.name} could not be measured: ${(error as Error).stack}`)
      }
    }
    if (options.scenarios.includes('profile')) {
      const found = await profile(stage, options)
      process.stdout.write(options.json ? `${JSON.stringify(found, null, 2)}\n` : `\n${profileText(found)}\n`)
    }
  } finally {
    await stage.close()
  }
  if (options.json) {
    const command = `npm run bench -- ${process.argv.slice(2).join(' ')}`
    process.stdout.write(
      `${JSON.stringify({ command, machine: machine(), broker: stage.broker.kind, results }, null, 2)}\n`,
    )
  }
  if (options.gate === 'save') note(saveGate(results))
  if (options.gate !== 'check') return failed.length === 0 ? 0 : 1
  const { ok, lines } = checkGate(results)
  for (const line of lines) note(line)
  return ok && failed.length === 0 ? 0 : 1
}

async function measured(scenario: Scenario, stage: Stage, settings: Settings): Promise<ScenarioResult> {
  const startMs = monoMs()
  const loadBefore = load()
  const { rows, targets } = await scenario.run(stage, settings)
  const { name, about } = scenario
  return { scenario: name, about, rows, targets, seconds: (monoMs() - startMs) / 1000, load: [loadBefore, load()] }
}

process.exit(
  await main().catch((error: unknown) => {
    process.stderr.write(errorText(error, !(error instanceof HooktideError)))
    return 1
  }),
)
