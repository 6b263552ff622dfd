import { sleep, until } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { eventLoopP99 } from './throughput.ts'
import { type Event, World } from './world.ts'

const bytes = 1024
const subscriptions = 100
const holdMs = 15_000

/** Endpoints that take a second each, or never answer; Kafka holds far more than is open. */
export const memoryScenario: Scenario = {
  name: 'memory',
  about: `deliveries of ${bytes} B wait for slow or silent endpoints of ${subscriptions} subscriptions; memory until ${holdMs / 1000} s after all are fanned out`,
  async run(stage, settings) {
    const rows = new Rows()
    const count = settings.deliveries ?? 100_000
    for (const path of ['/delay/1000', '/hang']) {
      settings.note(`memory, ${path}, load ${load().toFixed(1)}`)
      const world = await World.open(stage, {
        name: `memory${path.slice(1, 5)}`,
        deliverer: { drain: '1s' },
        subscriptions: (origin) =>
          Array.from({ length: subscriptions }, (_, i) => ({
            id: `any${i}`,
            url: `${origin}${path}`,
            ordering: 'none' as const,
            maxInFlight: 2,
          })),
      })
      try {
        rows.add(`${count} waiting, ${path}`, await run(world, count))
      } finally {
        await world.close()
      }
    }
    return {
      rows: rows.all(),
      targets: rows.all().map(({ name }) => ({ row: name, figure: 'peak RSS MB', atMost: 400 })),
    }
  },
}

async function run(world: World, count: number): Promise<Figures> {
  const fill = createBodies(bytes)
  await world.receiver.expect(0, count)
  await world.produce(
    Array.from({ length: count }, (_, i): Event => ({ id: `any${i % subscriptions}`, body: fill(i, 0, 0) })),
  )
  const hooktide = await world.start()
  const reader = world.kafka.reader()
  try {
    await until('fan-out of all events', 100_000, async () => {
      await sleep(250)
      const ends = await reader.ends(`${world.prefix}deliveries`)
      return [...ends.values()].reduce((sum, end) => sum + end, 0) >= count
    })
    await sleep(holdMs)
    const seen = memory(hooktide.pid)
    const report = await world.receiver.report()
    const parked = await reader.ends(`${world.prefix}parked`)
    const page = await hooktide.metrics()
    return {
      'peak RSS MB': seen?.peakMb ?? null,
      'RSS at the end MB': seen?.nowMb ?? null,
      'heap used MB': page('nodejs_heap_size_used_bytes') / 1e6,
      'external MB': page('nodejs_external_memory_bytes') / 1e6,
      'loop delay p99 ms': await eventLoopP99(hooktide),
      'POSTs meanwhile': report.posts,
      'end offsets of parked': [...parked.values()].reduce((sum, end) => sum + end, 0),
    }
  } finally {
    await reader.close()
    // Open POSTs of silent endpoints are not waited for: twice asked, it ends at once.
    await hooktide.stop(3_000)
  }
}
