import { parseArgs } from 'node:util'
import type { Mode } from './plan.ts'
import { runSeed } from './run-seed.ts'
import { storyOf } from './story.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    safety: { type: 'boolean', default: false },
    liveness: { type: 'boolean', default: false },
    fault: { type: 'string' },
    plant: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
})
const modes: Mode[] =
  values.safety === values.liveness ? ['safety', 'liveness'] : values.safety ? ['safety'] : ['liveness']
let bad = 0
const began = performance.now()
let timers = 0
let runs = 0
for (const mode of modes) {
  for (let seed = Number(values.from); seed < Number(values.from) + Number(values.seeds); seed++) {
    const began = performance.now()
    const v = await runSeed(seed, mode, {
      faults: values.fault?.split(',') ?? null,
      ...(values.verbose ? { verbose: console.log } : {}),
    })
    timers += v.timers
    runs++
    if (values.verbose)
      console.log(mode, seed, Math.round(performance.now() - began), 'ms', Math.round(v.simulatedMs), v.timers, v.posts)
    if (v.problems.length > 0) {
      bad++
      console.log(`${mode} seed ${seed}: ${v.problems.length} problems\n  ${v.problems.slice(0, 6).join('\n  ')}`)
      console.log(`    ${storyOf(v.evidence, v.problems[0] as string).join('\n    ')}`)
    }
  }
}
console.log(
  `${runs} runs, ${bad} bad, ${Math.round((performance.now() - began) / runs)} ms each, ${Math.round(timers / runs)} timers each`,
)
