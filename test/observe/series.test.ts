import { describe, expect, it } from 'vitest'
import { readVitals, type VitalsSources } from '../../src/app/vitals.ts'
import { type SubscriptionVitals, worstSubscriptions } from '../../src/core/vitals.ts'
import { createObserver } from '../../src/observe/observer.ts'
import type { Pipeline } from '../../src/pipeline/assemble.ts'
import { Executor } from '../../src/pipeline/executor.ts'
import type { Work } from '../../src/pipeline/work.ts'
import { FakeClock } from '../sim/fake-clock.ts'

const clock = new FakeClock({ startMs: 1_000_000 })
const limits = {
  maxInFlight: 4,
  maxInFlightBytes: 1 << 20,
  retryShare: 0.3,
  maxPerSubscription: 4,
  maxPerOrigin: 4,
  maxPerOriginPerSecond: null,
}

/** A pipeline as it is when `count` subscriptions wait, each a millisecond longer than the next, and all of them fail. */
function crowded(count: number) {
  const executor = new Executor(
    { ...limits, leased: () => false },
    clock,
    () => null,
    () => {},
  )
  const owner = { begin: () => 'go' as const }
  const works = Array.from({ length: count }, (_, i) => {
    const delivery = { id: `d${i}`, subscriptionId: `s${i}`, body: Buffer.alloc(0), origin: { stream: 'events/0' } }
    return {
      source: 'deliveries',
      delivery,
      owner,
      line: null,
      bytes: 0,
      readyAtMs: 1_000_000 - count + i,
    } as unknown as Work
  })
  for (const work of works) executor.offer(work)
  const failing = works.map(({ delivery: { subscriptionId } }, i) => ({ subscriptionId, failures: i + 1 }))
  const lane = {
    flow: { pauses: () => [] },
    ledger: { deliveries: { next: 900, undone: 30 } },
    lines: works.map((_, i) => ({ state: i % 2 === 0 ? null : { state: 'blocked', count: 2 } })),
    bypass: { size: 3 },
    failing,
  }
  const runner = { partition: 5, status: 'running', lane, lastCommitMs: 12 }
  const pipeline = {
    executor,
    deliverer: { lanes: [runner] },
    router: null,
    leaseAgeMs: () => 0,
    circuits: { openOf: (scope: string) => (scope === 'sub' ? count : 1) },
    clockOffset: { estimateMs: null },
    ladder: { tiers: [] },
    subscriptions: { all: () => works.map(() => ({ status: 'active' as const })) },
  } as unknown as Pipeline
  return { works, owner, sources: { pipeline, clock, lanes: 12, ends: () => new Map([[5, 1000]]) } }
}

async function page(sources: VitalsSources): Promise<string[]> {
  const observer = createObserver({ clock, stream: { write: () => {} }, processMetrics: false })
  observer.registerVitals(() => readVitals(sources))
  const { body } = await observer.metrics()
  return body.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

describe('series', () => {
  it('do not grow with the subscriptions: 10,000 that wait and fail make as many as 50 do, and name the worst 20 of each', async () => {
    const [few, many] = await Promise.all([50, 10_000].map((n) => page({ ...crowded(n).sources, worst: 20 })))
    expect(many?.length).toBe(few?.length)
    expect(many?.length).toBeLessThan(500)
    const named = many?.filter((line) => line.includes('subscription="')) ?? []
    expect(named).toHaveLength(80)
    expect(named).toContain('hooktide_subscription_oldest_ready_age_seconds{subscription="s0"} 10')
    expect(named).toContain('hooktide_subscription_failures{subscription="s9999"} 10000')
    expect(named.join()).not.toContain('"s5000"')
  })

  it('name nobody when told to', async () => {
    const lines = await page({ ...crowded(100).sources, worst: 0 })
    expect(lines.filter((line) => line.includes('subscription="'))).toEqual([])
  })

  it('of who leaves the worst disappear', async () => {
    const { sources, works, owner } = crowded(5)
    const observer = createObserver({ clock, stream: { write: () => {} }, processMetrics: false })
    observer.registerVitals(() => readVitals({ ...sources, worst: 1 }))
    const named = async () =>
      [...(await observer.metrics()).body.matchAll(/^hooktide_subscription_oldest\w+\{subscription="(\w+)"\}/gm)].map(
        (match) => match[1],
      )
    expect(await named()).toContain('s0')
    sources.pipeline.executor.withdraw(owner as unknown as Work['owner'], works[0]?.delivery.subscriptionId)
    const after = await named()
    expect(after).toContain('s1')
    expect(after).not.toContain('s0')
  })

  it('say what is to do, how busy the executor is and how the last commit was', async () => {
    const lines = await page({ ...crowded(10).sources, worst: 1 })
    expect(lines).toEqual(
      expect.arrayContaining([
        'hooktide_ready_backlog{lane="5"} 130',
        'hooktide_lane_done_offsets{lane="5"} 870',
        'hooktide_lanes_configured 12',
        'hooktide_in_flight_max 4',
        'hooktide_executor_utilisation 0',
        'hooktide_last_commit_seconds 0.012',
        'hooktide_lines{state="blocked"} 5',
        'hooktide_parked_deliveries{state="blocked"} 10',
        'hooktide_lines{state="stopped"} 0',
        'hooktide_bypassed_subscriptions 3',
        'hooktide_circuits_open{scope="subscription"} 10',
        'hooktide_subscriptions{status="active"} 10',
        'hooktide_subscriptions{status="disabled"} 0',
      ]),
    )
  })

  it('leave the backlog out where nobody knows the end of the log', async () => {
    const lines = await page({ ...crowded(1).sources, worst: 1, ends: () => null })
    expect(lines.filter((line) => line.startsWith('hooktide_ready_backlog'))).toEqual([])
    expect(lines).toContain('hooktide_lane_done_offsets{lane="5"} 870')
  })
})

describe('the worst subscriptions', () => {
  const of = (subscriptionId: string, oldestReadyAgeMs: number, failures: number): SubscriptionVitals => ({
    subscriptionId,
    oldestReadyAgeMs,
    failures,
  })
  const ids = (all: SubscriptionVitals[], most: number) => worstSubscriptions(all, most).map((v) => v.subscriptionId)

  it.each([
    ['by age, then by failures', [of('a', 5, 0), of('b', 9, 0), of('c', 0, 3), of('d', 0, 7)], 1, ['b', 'd']],
    ['each once', [of('a', 9, 9), of('b', 1, 1)], 1, ['a']],
    ['equal ones by name', [of('b', 5, 0), of('a', 5, 0)], 1, ['a']],
    ['nobody who is well', [of('a', 0, 0)], 5, []],
    ['nobody', [of('a', 5, 5)], 0, []],
  ])('%s', (_, all, most, expected) => expect(ids(all, most)).toEqual(expected))
})
