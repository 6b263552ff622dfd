import { errorText } from '../src/cli/run.ts'
import { HooktideError } from '../src/core/error.ts'
import { benchFilter } from './filter.ts'
import { latency } from './latency.ts'
import { lateness } from './lateness.ts'
import { load, machine } from './machine.ts'
import { memoryScenario } from './memory-scenario.ts'
import { monoMs } from './mono.ts'
import { noisy } from './noisy.ts'
import { readOptions } from './options.ts'
import { machineText, scenarioText } from './print.ts'
import { profile, profileText } from './profile.ts'
import type { ScenarioResult } from './result.ts'
import type { Scenario } from './scenario.ts'
import { throughput } from './throughput.ts'
import { Stage } from './world.ts'

const scenarios: readonly Scenario[] = [throughput, latency, memoryScenario, lateness, noisy]

/** The suite: every scenario beside its reference in one run. Results on stdout, progress on stderr. */
async function main(): Promise<number> {
  // Needs no broker.
  if (process.argv[2] === 'filter') return benchFilter((line) => void process.stdout.write(`${line}\n`)) ? 0 : 1
  const options = readOptions(process.argv.slice(2), [...scenarios.map(({ name }) => name), 'profile'])
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`)
    return 2
  }
  const note = (line: string) => void process.stderr.write(`${line}\n`)
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
    for (const scenario of scenarios.filter(({ name }) => options.scenarios.includes(name))) {
      const startMs = monoMs()
      const loadBefore = load()
      try {
        const { rows, targets } = await scenario.run(stage, { ...options, patienceMs: 150_000, note })
        results.push({
          scenario: scenario.name,
          about: scenario.about,
          rows,
          targets,
          seconds: (monoMs() - startMs) / 1000,
          load: [loadBefore, load()],
        })
        if (!options.json) process.stdout.write(`\n${scenarioText(results.at(-1) as ScenarioResult)}\n`)
      } catch (error) {
        failed.push(scenario.name)
        note(`${scenario.name} could not be measured: ${(error as Error).stack}`)
      }
    }
    if (options.scenarios.includes('profile')) {
      const found = await profile(stage, { ...options, ordered: false })
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
  return failed.length === 0 ? 0 : 1
}

process.exit(
  await main().catch((error: unknown) => {
    process.stderr.write(errorText(error, !(error instanceof HooktideError)))
    return 1
  }),
)
