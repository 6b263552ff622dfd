import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load } from './machine.ts'
import { monoMs } from './mono.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { quantile } from './stats.ts'
import { type Event, World } from './world.ts'

const drips = 50
const others = 20
const perSecond = 200
const seconds = 20
const perDrip = 100

/** The same pace of deliveries to endpoints that answer, without and with endpoints that never finish their header. */
export const drip: Scenario = {
  name: 'drip',
  about: `${perSecond} deliveries/s for ${seconds} s to ${others} endpoints that answer, beside ${drips} with ${perDrip} deliveries each that drip a byte every half second`,
  async run(stage, settings) {
    settings.note(`drip, load ${load().toFixed(1)}`)
    const world = await World.open(stage, {
      name: 'drip',
      // What is to be seen is what slots do: an origin of their own with no cap of its own below them.
      deliverer: { perOrigin: 256 },
      http: { allowPrivate: ['127.0.0.1', 'localhost'], maxSocketsPerOrigin: 256 },
      subscriptions: (origin) => [
        ...Array.from({ length: drips }, (_, i) => ({
          id: `drip${i}`,
          url: `${origin}/drip`,
          ordering: 'none' as const,
        })),
        ...Array.from({ length: others }, (_, i) => ({
          id: `other${i}`,
          url: `${origin.replace('127.0.0.1', 'localhost')}/ok`,
          ordering: 'none' as const,
        })),
      ],
    })
    const rows = new Rows()
    try {
      const hooktide = await world.start()
      try {
        await paced(world, 0, 2)
        const alone = await paced(world, 1_000, seconds)
        rows.add('alone', alone)
        const fill = createBodies(1024)
        const noise = Array.from({ length: drips * perDrip }, (_, i): Event => {
          return { id: `drip${i % drips}`, body: fill(900_000 + i, 0, 0) }
        })
        // The pace begins with them: the first seconds, before any circuit can open, are what this is about.
        const [beside] = await Promise.all([paced(world, 10_000, seconds), world.produce(noise)])
        const share = (beside['rate/s'] as number) / (alone['rate/s'] as number)
        rows.add('beside drips', { ...beside, 'share of the rate alone %': share * 100 })
      } finally {
        await hooktide.stop(3_000)
      }
    } finally {
      await world.close()
    }
    return {
      rows: rows.all(),
      targets: [{ row: 'beside drips', figure: 'share of the rate alone %', atLeast: 95 }],
    }
  },
}

/** Deliveries `base` … at an even pace; what arrived while they were produced, and how late. */
async function paced(world: World, base: number, forSeconds: number): Promise<Figures> {
  const count = perSecond * forSeconds
  const fill = createBodies(1024)
  await world.receiver.expect(base, count)
  const startMs = monoMs()
  for (let sent = 0; sent < count; ) {
    const due = Math.min(count, Math.ceil(((monoMs() - startMs) / 1000) * perSecond))
    const events = Array.from({ length: Math.max(0, due - sent) }, (_, i): Event => {
      return { id: `other${(sent + i) % others}`, body: fill(base + sent + i, 0, monoMs()) }
    })
    sent += events.length
    if (events.length > 0) await world.produce(events)
    await sleep(20)
  }
  // A delivery that comes half a second after the last was produced was held up.
  await sleep(500)
  const tookMs = monoMs() - startMs - 500
  const report = await world.receiver.report()
  const late = Array.from(report.first, (atMs, i) => atMs - (report.produced[i] as number)).filter((ms) => ms > 0)
  late.sort((a, b) => a - b)
  return {
    'rate/s': report.distinct / (tookMs / 1000),
    'p50 ms': quantile(late, 0.5),
    'p99 ms': quantile(late, 0.99),
    'most ms': late.at(-1) ?? null,
  }
}
