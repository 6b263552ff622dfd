import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { quantile } from './stats.ts'
import { eventLoopP99 } from './throughput.ts'
import { World } from './world.ts'

const subscriptions = 50
const perSecond = 200

/** The endpoints that `punctuality` asks. */
export const answering = {
  deliverer: { perOrigin: 256 },
  http: { maxSocketsPerOrigin: 256 },
  subscriptions: (origin: string) =>
    Array.from({ length: subscriptions }, (_, i) => ({
      id: `any${i}`,
      url: `${origin}/limit`,
      ordering: 'none' as const,
    })),
}

/** Due: when the endpoint answered 429, plus its Retry-After of 1 to 30 s; the tiers are short and mixed. */
export const lateness: Scenario = {
  name: 'lateness',
  about:
    'deliveries answered 429 with Retry-After 1 … 30 s, over tiers of 500 ms, 2 s and 5 s; second attempt against the due time',
  async run(stage, settings) {
    const rows = new Rows()
    const count = settings.deliveries ?? 2_000
    settings.note(`lateness, load ${load().toFixed(1)}`)
    const world = await World.open(stage, {
      name: 'lateness',
      topics: {
        tiers: [
          { name: 'retry-500ms', delay: '500ms' },
          { name: 'retry-2s', delay: '2s' },
          { name: 'retry-5s', delay: '5s' },
        ],
      },
      retry: { maxAttempts: 4, base: '10ms', factor: 2, cap: '1s', retryAfterCap: '1m' },
      ...answering,
    })
    try {
      rows.add('Hooktide', await punctuality(world, count))
    } finally {
      await world.close()
    }
    return {
      rows: rows.all(),
      targets: [
        { row: 'Hooktide', figure: 'p99 ms', atMost: 100 },
        { row: 'Hooktide', figure: 'early', atMost: 0 },
        { row: 'Hooktide', figure: 'missing', atMost: 0 },
      ],
    }
  },
}

/** `count` deliveries at 200/s to an endpoint that answers 429 once: how late their second attempts start. */
export async function punctuality(world: World, count: number): Promise<Figures> {
  const fill = createBodies(256)
  await world.receiver.expect(0, count)
  const hooktide = await world.start()
  try {
    await sleep(3_000)
    for (let n = 0; n < count; n += perSecond / 10) {
      const batch = Math.min(perSecond / 10, count - n)
      await world.produce(
        Array.from({ length: batch }, (_, i) => ({ id: `any${(n + i) % subscriptions}`, body: fill(n + i, 0, 0) })),
      )
      await sleep(100)
    }
    await world.receiver.reached(1, 30_000)
    await sleep(33_000)
    const report = await world.receiver.report()
    const late: number[] = []
    for (let i = 0; i < count; i++) {
      const second = report.second[i] as number
      if (second > 0) late.push(second - (report.due[i] as number))
    }
    late.sort((a, b) => a - b)
    return {
      'p50 ms': quantile(late, 0.5),
      'p99 ms': quantile(late, 0.99),
      'max ms': quantile(late, 1),
      'earliest ms': quantile(late, 0),
      early: late.filter((ms) => ms < 0).length,
      missing: count - late.length,
      'loop delay p99 ms': await eventLoopP99(hooktide),
      'peak RSS MB': memory(hooktide.pid)?.peakMb ?? null,
    }
  } finally {
    await hooktide.stop()
  }
}
