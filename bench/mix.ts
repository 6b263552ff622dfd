import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { eventLoopP99 } from './throughput.ts'
import { perThousand, type Reading, read } from './usage.ts'
import { type Event, type Stage, World } from './world.ts'

const subscriptions = 100
const bytes = 1024
/** Numbers of what goes to the endpoint that stalls: the receiver does not count them. */
const uncounted = 5_000_000

/** In turns: all endpoints answer; six of a hundred first attempts are answered 503 and one endpoint takes ten seconds. */
export const mix: Scenario = {
  name: 'mix',
  about: `first attempts a second of ${subscriptions - 1} endpoints, 256 open: all answering; and with 6 % answered 503 at first, while one more endpoint takes 10 s`,
  async run(stage, settings) {
    const rows = new Rows()
    const count = settings.deliveries ?? 40_000
    for (let round = 0; round < settings.rounds; round++) {
      settings.note(`mix, round ${round + 1} of ${settings.rounds}, load ${load().toFixed(1)}`)
      const plain = await run(stage, count, '/ok', '/ok')
      rows.add('all answer', plain)
      const mixed = await run(stage, count, '/fail/6', '/delay/10000')
      rows.add('mixed', { ratio: (mixed.steady ?? Number.NaN) / (plain.steady ?? Number.NaN), ...mixed })
    }
    return { rows: rows.all(), targets: [{ row: 'mixed', figure: 'ratio', atLeast: 0.9 }] }
  },
}

async function run(stage: Stage, count: number, path: string, slowPath: string): Promise<Figures> {
  const world = await World.open(stage, {
    name: 'mix',
    deliverer: { drain: '1s', perOrigin: 256 },
    http: { allowPrivate: ['127.0.0.1', 'localhost'], maxSocketsPerOrigin: 256 },
    subscriptions: (origin) =>
      Array.from({ length: subscriptions }, (_, i) => ({
        id: `any${i}`,
        url: i === 0 ? `${origin.replace('127.0.0.1', 'localhost')}${slowPath}` : `${origin}${path}`,
        ordering: 'none' as const,
      })),
  })
  try {
    const fill = createBodies(bytes)
    let n = 0
    const events = Array.from({ length: Math.ceil((count * subscriptions) / (subscriptions - 1)) }, (_, i): Event => {
      const number = i % subscriptions === 0 ? uncounted + i : n++
      return { id: `any${i % subscriptions}`, body: fill(number, 0, 0) }
    })
    await world.produce(events)
    await sleep(1_000)
    const processes: Record<string, number | null> = { sender: null, broker: stage.broker.pid ?? null }
    const readings = new Map<number, Reading>()
    await world.receiver.expect(0, n, (mark) => readings.set(mark, read(processes)))
    const hooktide = await world.start()
    processes.sender = hooktide.pid
    try {
      await world.receiver.reached(1, 110_000)
      const [fifth, end] = [readings.get(0.2), readings.get(1)] as [Reading, Reading]
      const steady = n - Math.ceil(n * 0.2)
      return {
        steady: (steady * 1000) / (end.atMs - fifth.atMs),
        'CPU s/1000': perThousand(fifth, end, 'sender', steady),
        'broker CPU s/1000': perThousand(fifth, end, 'broker', steady),
        'peak RSS MB': memory(hooktide.pid)?.peakMb ?? null,
        'loop delay p99 ms': await eventLoopP99(hooktide),
      }
    } finally {
      await hooktide.stop(3_000)
    }
  } finally {
    await world.close()
  }
}
