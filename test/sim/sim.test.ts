import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { runCampaign, type Tally } from './campaign.ts'
import { runSeed } from './run-seed.ts'

// Two at least: on one core they only take turns.
const processes = Math.max(2, Math.min(4, availableParallelism()))

function broken({ failures }: Tally): string[] {
  return failures.map(({ mode, seed, problems, story }) =>
    [`npm run sim -- --seeds 1 --from ${seed} --${mode} --verbose`, ...problems, ...story].join('\n'),
  )
}

describe('the pipeline in simulated worlds', () => {
  it('keeps every promise in 1,000 worlds of 200 events with faults of all kinds', { timeout: 400_000 }, async () => {
    const campaign = { mode: 'safety', from: 1, seeds: 1_000, faults: null, plant: null, stopAtFirst: false } as const
    const tally = await runCampaign(campaign, processes)
    expect(broken(tally)).toEqual([])
    expect(tally.runs).toBe(1_000)
    // A world in which nothing is wanted would prove nothing.
    expect(tally.deliveries / tally.runs).toBeGreaterThan(200)
  })

  it('comes to its end in 300 worlds within a bounded time after the last fault', { timeout: 200_000 }, async () => {
    const campaign = { mode: 'liveness', from: 1, seeds: 300, faults: null, plant: null, stopAtFirst: false } as const
    const tally = await runCampaign(campaign, processes)
    expect(broken(tally)).toEqual([])
    expect(tally.runs).toBe(300)
  })

  it('replays a seed exactly', async () => {
    const told = async () => {
      const { evidence, timers, simulatedMs } = await runSeed(7, 'safety')
      return { posts: evidence.posts, positions: evidence.positions, timers, simulatedMs }
    }
    expect(await told()).toEqual(await told())
  })
})
