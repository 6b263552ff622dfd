import { sleep, until } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { monoMs } from './mono.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { eventLoopP99 } from './throughput.ts'
import { perThousand, read } from './usage.ts'
import { type Event, type Stage, World } from './world.ts'

const bytes = 1024
const others = 50

/** The router runs first and alone, so that all of the noisy deliveries stand before the others when the lane starts. */
export const noisy: Scenario = {
  name: 'noisy',
  about: `deliveries of one subscription whose endpoint hangs, in front of one each for ${others} others on the only lane`,
  async run(stage, settings) {
    const rows = new Rows()
    const count = settings.deliveries ?? 200_000
    for (const ordering of ['none', 'key'] as const) {
      settings.note(`noisy, ${ordering}, load ${load().toFixed(1)}`)
      const world = await World.open(stage, {
        name: `noisy${ordering}`,
        topics: { lanes: 1 },
        deliverer: { drain: '1s' },
        subscriptions: (origin) => [
          { id: 'noisy', url: `${origin}/hang`, ordering },
          // Another host name: the noisy one's own origin is not to be the reason that they wait, or do not.
          ...Array.from({ length: others }, (_, i) => ({
            id: `other${i}`,
            url: `${origin.replace('127.0.0.1', 'localhost')}/ok`,
            ordering: 'none' as const,
          })),
        ],
        http: { allowPrivate: ['127.0.0.1', 'localhost'] },
      })
      try {
        rows.add(`${count} in front, ordering ${ordering}`, await run(world, stage, count, ordering))
      } finally {
        await world.close()
      }
    }
    const targets = rows.all().flatMap(({ name }) => [
      { row: name, figure: 'until all others s', atMost: 5 },
      { row: name, figure: 'peak RSS MB', atMost: 400 },
    ])
    return { rows: rows.all(), targets }
  },
}

async function run(world: World, stage: Stage, count: number, ordering: 'none' | 'key'): Promise<Figures> {
  const fill = createBodies(bytes)
  const router = await world.start({ roles: 'router' })
  const reader = world.kafka.reader()
  try {
    const noise = Array.from({ length: count }, (_, i): Event => {
      const body = fill(others + i, 0, 0)
      return ordering === 'none' ? { id: 'noisy', body } : { id: 'noisy', key: `k${i % 100}`, body }
    })
    await world.produce(noise)
    await standing(world, reader, count)
    await world.produce(Array.from({ length: others }, (_, i): Event => ({ id: `other${i}`, body: fill(i, 0, 0) })))
    await standing(world, reader, count + others)
  } finally {
    await router.stop()
  }
  const processes: Record<string, number | null> = { sender: null, broker: stage.broker.pid ?? null }
  let end = read(processes)
  await world.receiver.expect(0, others, () => {
    end = read(processes)
  })
  const spawnMs = monoMs()
  const hooktide = await world.start({ roles: 'deliverer' })
  processes.sender = hooktide.pid
  const start = read(processes)
  try {
    const allMs = await world.receiver.reached(1, 60_000).catch(() => null)
    const report = await world.receiver.report()
    await sleep(10_000)
    const ends = await reader.ends(`${world.prefix}parked`)
    return {
      'until all others s': allMs === null ? Number.POSITIVE_INFINITY : (allMs - hooktide.startedAtMs) / 1000,
      'CPU s/1000 in front': perThousand(start, end, 'sender', count),
      'broker CPU s/1000 in front': perThousand(start, end, 'broker', count),
      'start s': (hooktide.startedAtMs - spawnMs) / 1000,
      'others arrived': report.distinct,
      'peak RSS MB': memory(hooktide.pid)?.peakMb ?? null,
      'end offsets of parked': [...ends.values()].reduce((sum, end) => sum + end, 0),
      'loop delay p99 ms': await eventLoopP99(hooktide),
    }
  } finally {
    await reader.close()
    await hooktide.stop(3_000)
  }
}

async function standing(world: World, reader: ReturnType<World['kafka']['reader']>, count: number): Promise<void> {
  await until(`${count} deliveries in the lane`, 100_000, async () => {
    await sleep(100)
    const ends = await reader.ends(`${world.prefix}deliveries`)
    return [...ends.values()].reduce((sum, end) => sum + end, 0) >= count
  })
}
