import { parseArgs } from 'node:util'
import { type Failure, runCampaign } from './campaign.ts'
import type { Mode } from './plan.ts'
import { plants } from './plants.ts'
import { runSeed } from './run-seed.ts'
import { storyOf } from './story.ts'

const usage = `npm run sim -- [--seeds N] [--from S] [--safety | --liveness] [--fault a,b] [--plant NAME] [--processes N] [--verbose]
  one failing seed again, with its log: --seeds 1 --from SEED --safety --verbose
  plants: ${Object.keys(plants).join(' ')}`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    safety: { type: 'boolean', default: false },
    liveness: { type: 'boolean', default: false },
    fault: { type: 'string' },
    plant: { type: 'string' },
    processes: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) console.log(usage)
else process.exitCode = await main()

async function main(): Promise<number> {
  const modes: Mode[] =
    values.safety === values.liveness ? ['safety', 'liveness'] : values.safety ? ['safety'] : ['liveness']
  const seeds = Number(values.seeds)
  const from = Number(values.from)
  const faults = values.fault?.split(',') ?? null
  const plant = values.plant ?? null
  let failed = 0
  for (const mode of modes) {
    const began = performance.now()
    if (values.verbose) {
      for (let seed = from; seed < from + seeds; seed++) {
        const planted = plant === null ? undefined : plants[plant]?.()
        const verbose = (line: string) => console.log(line)
        const verdict = await runSeed(seed, mode, {
          faults,
          verbose,
          ...(planted === undefined ? {} : { mistake: planted.mistake }),
        })
        planted?.undo()
        failed += verdict.problems.length > 0 ? 1 : 0
        for (const problem of verdict.problems)
          print({ mode, seed, problems: [problem], story: storyOf(verdict.evidence, problem, 60) })
      }
      continue
    }
    const processes = values.processes === undefined ? undefined : Number(values.processes)
    const tally = await runCampaign({ mode, from, seeds, faults, plant, stopAtFirst: plant !== null }, processes)
    for (const failure of tally.failures) print(failure)
    failed += tally.failures.length
    const s = (performance.now() - began) / 1000
    console.log(
      `${mode}: ${tally.runs} seeds, ${tally.deliveries} deliveries, ${tally.posts} POSTs, ${tally.failures.length} failed, ` +
        `${s.toFixed(1)} s (${((1000 * s) / Math.max(1, tally.runs)).toFixed(0)} ms each)`,
    )
    if (plant !== null && tally.failures.length > 0) break
  }
  if (plant !== null) {
    console.log(failed > 0 ? `plant ${plant} was found` : `plant ${plant} was NOT found`)
    return failed > 0 ? 0 : 1
  }
  return failed > 0 ? 1 : 0
}

function print({ mode, seed, problems, story }: Failure): void {
  console.log(`${mode} seed ${seed}:\n  ${problems.join('\n  ')}\n    ${story.join('\n    ')}`)
  console.log(`  again: npm run sim -- --seeds 1 --from ${seed} --${mode} --verbose`)
}
