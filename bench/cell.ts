import { sleep, until } from './clock.ts'
import { createBodies } from './events.ts'
import { memory } from './machine.ts'
import { monoMs } from './mono.ts'
import type { Figures } from './result.ts'
import { eventLoopP99 } from './throughput.ts'
import { perThousand, read } from './usage.ts'
import { type Event, type Stage, World } from './world.ts'

/** One point of a scale: everything at its usual value but what the point is about. */
export interface Cell {
  /** In the table of subscriptions; at most 100 of them get events. */
  readonly subscriptions: number
  /** Subscriptions that want each event. */
  readonly fanOut: number
  readonly lanes: number
  /** Deliveries that stand in Kafka before the deliverer is started, beyond those that are measured. */
  readonly backlog: number
  /** Of a hundred first attempts, answered 503. */
  readonly failing: number
  readonly bytes: number
  /** That are measured. */
  readonly deliveries: number
}

export const usual: Cell = {
  subscriptions: 100,
  fanOut: 1,
  lanes: 12,
  backlog: 0,
  failing: 0,
  bytes: 1024,
  deliveries: 20_000,
}

const open = 256
const patienceMs = 240_000

/** Routed beforehand, so that what is measured is the deliverer's work, then the service as a whole; rate and cost between a fifth and all. */
export async function measureCell(stage: Stage, name: string, cell: Cell): Promise<Figures> {
  const active = Math.min(100, cell.subscriptions)
  const world = await World.open(stage, {
    name,
    topics: { lanes: cell.lanes },
    deliverer: { maxInFlight: open, perOrigin: open, drain: '1s' },
    http: { maxSocketsPerOrigin: open },
    subscriptions: (origin) =>
      Array.from({ length: Math.max(cell.subscriptions, cell.fanOut) }, (_, i) => ({
        id: `any${i}`,
        ...(cell.fanOut > 1 && i < cell.fanOut ? { types: ['fan'] } : {}),
        url: `${origin}${cell.failing > 0 ? `/fail/${cell.failing}` : '/ok'}`,
        ordering: 'none' as const,
      })),
  })
  try {
    const events = Math.ceil(cell.deliveries / cell.fanOut)
    await produce(world, cell, active, events + Math.ceil(cell.backlog / cell.fanOut))
    if (cell.backlog > 0) await routeAll(world, cell.deliveries + cell.backlog)
    await sleep(1_000)
    await world.receiver.expect(0, events + Math.ceil(cell.backlog / cell.fanOut))
    const hooktide = await world.start()
    try {
      const processes = { sender: hooktide.pid, broker: stage.broker.pid ?? null }
      const posted = async () => {
        const { posts, distinct } = await world.receiver.counts()
        return cell.fanOut > 1 ? posts : distinct
      }
      const at = async (wanted: number) => {
        const deadlineMs = monoMs() + patienceMs
        for (let seen = await posted(); ; seen = await posted()) {
          if (seen >= wanted) return { seen, reading: read(processes) }
          if (monoMs() > deadlineMs) throw new Error(`only ${seen} of ${wanted} have arrived`)
          await sleep(20)
        }
      }
      const from = await at(cell.deliveries * 0.2)
      const to = await at(cell.deliveries)
      const count = to.seen - from.seen
      return {
        'per s': (count * 1000) / (to.reading.atMs - from.reading.atMs),
        'CPU s/1000': perThousand(from.reading, to.reading, 'sender', count),
        'broker CPU s/1000': perThousand(from.reading, to.reading, 'broker', count),
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

async function produce(world: World, cell: Cell, active: number, events: number): Promise<void> {
  const fill = createBodies(cell.bytes)
  const atOnce = Math.max(1, Math.min(20_000, Math.floor(40_000_000 / cell.bytes)))
  for (let from = 0; from < events; from += atOnce) {
    const batch = Array.from({ length: Math.min(atOnce, events - from) }, (_, i): Event => {
      const n = from + i
      return { id: cell.fanOut > 1 ? 'fan' : `any${n % active}`, body: fill(n, 0, 0) }
    })
    await world.produce(batch)
  }
}

/** The router alone, until everything stands in `deliveries`. */
async function routeAll(world: World, deliveries: number): Promise<void> {
  const router = await world.start({ roles: 'router' })
  const reader = world.kafka.reader()
  try {
    await until('fan-out of all events', 600_000, async () => {
      await sleep(500)
      const ends = await reader.ends(`${world.prefix}deliveries`)
      return [...ends.values()].reduce((sum, end) => sum + end, 0) >= deliveries
    })
    await sleep(1_500)
  } finally {
    await reader.close()
    await router.stop()
  }
}
