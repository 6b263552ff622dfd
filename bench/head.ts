import { until } from './clock.ts'
import { createBodies } from './events.ts'
import { load } from './machine.ts'
import { monoMs } from './mono.ts'
import { Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { type Event, World } from './world.ts'

const failures = 6

/** The first of one ordering key is answered 503 six times; everything else is taken at once. */
export const head: Scenario = {
  name: 'head',
  about: `an ordered key whose head fails ${failures} times, with its followers arriving meanwhile; tiers of 500 ms, 1 s and 2 s`,
  async run(stage, settings) {
    const rows = new Rows()
    const count = settings.deliveries ?? 5_001
    settings.note(`head, load ${load().toFixed(1)}`)
    const world = await World.open(stage, {
      name: 'head',
      topics: {
        lanes: 2,
        tiers: [
          { name: 'retry-500ms', delay: '500ms' },
          { name: 'retry-1s', delay: '1s' },
          { name: 'retry-2s', delay: '2s' },
        ],
      },
      retry: { maxAttempts: 10, base: '1s', factor: 1.5, cap: '3s', retryAfterCap: '1m' },
      subscriptions: (origin) => [{ id: 'any0', url: `${origin}/head/${failures}`, ordering: 'key' as const }],
    })
    const fill = createBodies(256)
    await world.receiver.expect(0, count)
    const hooktide = await world.start()
    const reader = world.kafka.reader()
    const sum = async (topic: string) => {
      const ends = await reader.ends(`${world.prefix}${topic}`)
      return [...ends.values()].reduce((all, end) => all + end, 0)
    }
    try {
      const startMs = monoMs()
      for (let n = 0; n < count; n += 100) {
        const batch = Math.min(100, count - n)
        await world.produce(
          Array.from({ length: batch }, (_, i): Event => ({ id: 'any0', key: 'k', body: fill(n + i, 0, 0) })),
        )
      }
      await world.receiver.reached(1, 100_000)
      const doneMs = monoMs() - startMs
      const open = await until('an empty lane-state', 20_000, async () => (await openLines(world)) === 0).then(
        () => 0,
        () => openLines(world),
      )
      const report = await world.receiver.report()
      rows.add('Hooktide', {
        'until all arrived s': doneMs / 1000,
        missing: count - report.distinct,
        'out of order': report.outOfOrder,
        repeats: report.posts - report.distinct - failures,
        // Control records of the transactions stand among them: an upper bound.
        'appends to parked per follower, at most': (await sum('parked')) / (count - 1),
        'lines in lane-state at the end': open,
      })
    } finally {
      await reader.close()
      await hooktide.stop()
      await world.close()
    }
    return {
      rows: rows.all(),
      targets: [
        ...['missing', 'out of order', 'repeats', 'lines in lane-state at the end'].map((figure) => ({
          row: 'Hooktide',
          figure,
          atMost: 0,
        })),
        { row: 'Hooktide', figure: 'appends to parked per follower, at most', atMost: 1.1 },
      ],
    }
  },
}

async function openLines(world: World): Promise<number> {
  const reader = world.kafka.reader()
  const open = new Set<string>()
  try {
    const topic = `${world.prefix}lane-state`
    for (const [partition, end] of await reader.ends(topic)) {
      for (let from = 0; from < end; ) {
        const batch = await reader.fetch({ topic, partition, from })
        for (const { key, value } of batch.records) {
          const name = key?.toString() ?? ''
          if (!name.startsWith('line:')) continue
          if (value === null) open.delete(name)
          else open.add(name)
        }
        from = batch.nextOffset
      }
    }
    return open.size
  } finally {
    await reader.close()
  }
}
