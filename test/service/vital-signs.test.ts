import { afterAll, beforeAll, expect, test } from 'vitest'
import { PipelineHealth } from '../../src/app/health.ts'
import type { Pipeline } from '../../src/pipeline/assemble.ts'
import { realClock } from '../support/clock.ts'
import { gate } from './endpoint.ts'
import { createWorld, type Running, until, type World } from './world.ts'

let world: World
let service: Running
beforeAll(async () => {
  world = await createWorld({ env: { HOOKTIDE_DELIVERER_BUFFER_PER_LANE_RECORDS: '10', HOOKTIDE_TOPICS_LANES: '1' } })
  service = await world.up()
})
afterAll(() => world?.close())

/** Every sample of the page, by name and labels. */
async function scrape(): Promise<Map<string, number>> {
  const { text } = await service.page('/metrics')
  return new Map(
    [...text.matchAll(/^(hooktide_[a-z0-9_]+(?:\{[^}]*\})?) (\S+)$/gm)].map(([, name, value]) => [
      name as string,
      Number(value),
    ]),
  )
}

function sum(samples: Map<string, number>, prefix: string): number {
  return [...samples].reduce((total, [name, value]) => total + (name.startsWith(prefix) ? value : 0), 0)
}

test('/metrics names every vital sign, and each moves with what it measures', async () => {
  const held = gate<{ status: number }>()
  const ids = Array.from({ length: 6 }, (_, i) => `s${i}`)
  const retried = world.endpoint.at('/later', (_post, nth) =>
    nth === 1 ? { status: 503, headers: { 'retry-after': '4' } } : { status: 200 },
  )
  await world.subscribe(world.subscription('later', retried, { types: ['later'] }))
  await world.produce({ id: 'l0', type: 'later' })
  await until(
    'one is scheduled',
    () => service.log.of('delivery.attempted', (line) => line.settlement === 'scheduled').length === 1,
  )
  await world.subscribe(
    ...ids.map((id) =>
      world.subscription(
        id,
        world.endpoint.at(`/${id}`, () => held.opened),
        { types: ['held'], maxInFlight: 1 },
      ),
    ),
  )
  await world.produce(...Array.from({ length: 10 }, (_, i) => ({ id: `h${i}`, type: 'held' })))

  const busy = await until(
    'all of them show',
    async () => {
      const now = await scrape()
      const due = now.get('hooktide_tier_lowest_due_seconds{tier="retry-1s"}')
      const lag =
        now.get(`hooktide_consumer_lag{group="${world.prefix}deliverer",topic="${world.topics.deliveries}"}`) ?? 0
      return (
        due !== undefined &&
        lag > 10 &&
        sum(now, 'hooktide_paused_partitions{') > 0 &&
        (now.get('hooktide_in_flight') ?? 0) >= 4 &&
        now
      )
    },
    { seen: () => service.log.trouble.slice(-5) },
  )
  expect(busy.get('hooktide_in_flight')).toBeLessThanOrEqual(ids.length)
  expect(busy.get('hooktide_in_flight_bytes')).toBeGreaterThan(0)
  expect(busy.get('hooktide_ready_depth')).toBeGreaterThan(0)
  expect(busy.get('hooktide_oldest_ready_age_seconds')).toBeGreaterThan(0)
  expect([...busy.keys()].filter((name) => name.startsWith('hooktide_paused_partitions{reason="'))).not.toEqual([])
  expect(busy.get('hooktide_lanes{state="running"}')).toBe(1)
  expect(busy.get('hooktide_clock_offset_seconds')).toBeDefined()
  // One machine, one clock.
  expect(Math.abs(busy.get('hooktide_clock_offset_seconds') as number)).toBeLessThan(1)
  expect(busy.get('hooktide_tier_held{tier="retry-1s"}')).toBe(1)
  expect(busy.get('hooktide_ready_backlog{lane="0"}')).toBeGreaterThan(10)
  expect(busy.get('hooktide_lanes_configured')).toBe(1)
  expect(busy.get('hooktide_executor_utilisation')).toBeCloseTo(
    (busy.get('hooktide_in_flight') as number) / (busy.get('hooktide_in_flight_max') as number),
  )
  expect(busy.get('hooktide_last_commit_seconds')).toBeGreaterThan(0)
  expect(busy.get('hooktide_subscriptions{status="active"}')).toBe(7)
  expect(sum(busy, 'hooktide_subscription_oldest_ready_age_seconds{')).toBeGreaterThan(0)
  expect(busy.get('hooktide_stale_results_total')).toBe(0)
  expect(busy.get('hooktide_repeats_dropped_total')).toBe(0)
  expect(
    busy.get(`hooktide_consumer_lag{group="${world.prefix}router",topic="${world.topics.events[0]}"}`),
  ).toBeDefined()
  const due = busy.get('hooktide_tier_lowest_due_seconds{tier="retry-1s"}') as number
  expect(due).toBeLessThanOrEqual(4)

  const later = await until('the next scrape', async () => {
    const now = await scrape()
    return (
      (now.get('hooktide_oldest_ready_age_seconds') ?? 0) > (busy.get('hooktide_oldest_ready_age_seconds') as number) &&
      now
    )
  })
  const dueLater = later.get('hooktide_tier_lowest_due_seconds{tier="retry-1s"}')
  if (dueLater !== undefined) expect(dueLater).toBeLessThan(due)
  held.open({ status: 200 })
  await until(
    'all is delivered',
    () =>
      ids.every((id) => world.endpoint.delivered(`/${id}`).length === 10) &&
      world.endpoint.delivered('/later').length === 1,
  )
  const idle = await until('and committed', async () => {
    const now = await scrape()
    return sum(now, 'hooktide_consumer_lag{') === 0 && now
  })
  for (const gauge of [
    'hooktide_in_flight',
    'hooktide_in_flight_bytes',
    'hooktide_ready_depth',
    'hooktide_oldest_ready_age_seconds',
    'hooktide_ready_backlog{lane="0"}',
    'hooktide_executor_utilisation',
  ])
    expect([gauge, idle.get(gauge)]).toEqual([gauge, 0])
  expect(sum(idle, 'hooktide_paused_partitions{')).toBe(0)
  expect(sum(idle, 'hooktide_subscription_oldest_ready_age_seconds{')).toBe(0)
  expect(idle.has('hooktide_tier_lowest_due_seconds{tier="retry-1s"}')).toBe(false)
  expect(sum(idle, 'hooktide_tier_promoted_total{')).toBeGreaterThanOrEqual(3)
  expect(idle.get('hooktide_commit_seconds_count') as number).toBeGreaterThan(
    busy.get('hooktide_commit_seconds_count') as number,
  )
  expect(idle.get('hooktide_attempts_total{outcome="delivered",settlement="done"}')).toBe(61)
  expect(sum(idle, 'hooktide_tier_lateness_seconds_count{')).toBe(1)
  expect(sum(idle, 'hooktide_unknown_metrics_total')).toBe(0)
})

test('/readyz says 503 `stopping` while it drains, /healthz stays well, and what is open is settled', async () => {
  expect((await service.page('/readyz')).status).toBe(200)
  const held = gate<{ status: number }>()
  await world.subscribe(
    world.subscription(
      'last',
      world.endpoint.at('/last', () => held.opened),
      { types: ['last'] },
    ),
  )
  await world.produce({ id: 'z', type: 'last' })
  await until('it is open', () => world.endpoint.open('/last') === 1)
  const stopping = service.stop()
  const ready = await service.page('/readyz')
  expect([ready.status, JSON.parse(ready.text)]).toEqual([503, { ok: false, reasons: ['stopping'] }])
  expect((await service.page('/healthz')).status).toBe(200)
  held.open({ status: 200 })
  await stopping
  await expect(service.page('/readyz')).rejects.toThrow()
  expect(await world.attempts('last')).toMatchObject([{ settlement: 'done' }])
})

test('/healthz fails when nothing is settled although work is ready, or a lane can not be gained, and says so; idleness and progress are well', () => {
  let now = 0
  const executor = { completed: 0, startable: 0 }
  const lanes: { status: string }[] = []
  const pipeline = { executor, deliverer: { lanes }, leaseAgeMs: () => 0 } as unknown as Pipeline
  const health = new PipelineHealth(
    pipeline,
    { ...realClock, mono: () => now },
    { stalledMs: 30_000, gainingMs: 60_000, leaseMs: 60_000, outageMs: 600_000 },
  )
  const after = (ms: number) => {
    now += ms
    return health.check()
  }
  expect(after(100_000)).toEqual({ ok: true, reasons: [] })
  executor.startable = 5
  expect(after(29_000).ok).toBe(true)
  executor.completed++
  expect(after(29_000).ok).toBe(true)
  expect(after(29_000).ok).toBe(true)
  expect(after(2_000)).toEqual({ ok: false, reasons: ['5 deliveries are ready and none has been settled for 31 s'] })
  executor.completed++
  expect(after(1).ok).toBe(true)
  executor.startable = 0
  lanes.push({ status: 'gaining' }, { status: 'running' })
  expect(after(1).ok).toBe(true)
  expect(after(61_000)).toEqual({
    ok: false,
    reasons: [expect.stringMatching(/^1 lanes can not be taken over since 61 s: see lane\.gain_failed/)],
  })
  lanes.length = 0
  expect(after(1).ok).toBe(true)
})
