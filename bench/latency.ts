import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { monoMs } from './mono.ts'
import { Raw } from './raw.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { quantile } from './stats.ts'
import type { Report } from './tally.ts'
import { eventLoopP99 } from './throughput.ts'
import { perThousand, read } from './usage.ts'
import { type Stage, World } from './world.ts'

const perSecond = 200
const seconds = 20
const warmSeconds = 4
const warmDeliveries = 20_000
const bytes = 1024
const subscriptions = 100

/** One clock for all: the producer writes its time into the body, the receiver compares. */
export const latency: Scenario = {
  name: 'latency',
  about: `${perSecond} events/s for ${seconds} s, produce to receipt, after ${warmDeliveries} deliveries at full speed and ${warmSeconds} s at this pace; raw: the same pace without Kafka`,
  async run(stage, settings) {
    const rows = new Rows()
    const world = await World.open(stage, {
      name: 'latency',
      subscriptions: (origin) =>
        Array.from({ length: subscriptions }, (_, i) => ({
          id: `any${i}`,
          url: `${origin}/ok`,
          ordering: 'key' as const,
        })),
    })
    const raw = new Raw()
    try {
      const startMs = monoMs()
      for (let round = 0; round < settings.rounds; round++) {
        if (round > 0 && monoMs() - startMs > settings.patienceMs) {
          settings.note(`latency: no more rounds, the machine is slow`)
          break
        }
        settings.note(`latency, round ${round + 1} of ${settings.rounds}, load ${load().toFixed(1)}`)
        rows.add('raw', await runRaw(world, raw, stage))
        rows.add('Hooktide', await runHooktide(world, stage))
      }
    } finally {
      await raw.close()
      await world.close()
    }
    return {
      rows: rows.all(),
      targets: [
        { row: 'Hooktide', figure: 'p50 ms', atMost: 10 },
        { row: 'Hooktide', figure: 'p99 ms', atMost: 100 },
      ],
    }
  },
}

const count = perSecond * seconds
const warm = perSecond * warmSeconds
let base = 0

async function runRaw(world: World, raw: Raw, stage: Stage): Promise<Figures> {
  const { receiver } = world
  const processes = { sender: raw.pid, receiver: receiver.pid, broker: stage.broker.pid ?? null }
  const job = { origin: receiver.origin, path: '/ok', open: 256, bytes, perSecond }
  await receiver.expect(base + warm, count)
  await raw.run({ ...job, base, count: warm })
  const from = read(processes)
  await raw.run({ ...job, base: base + warm, count })
  const to = read(processes)
  base += warm + count
  return { ...figures(await receiver.report()), 'CPU s/1000': perThousand(from, to, 'sender', count) }
}

async function runHooktide(world: World, stage: Stage): Promise<Figures> {
  const { receiver } = world
  const hooktide = await world.start()
  try {
    const processes = { sender: hooktide.pid, receiver: receiver.pid, broker: stage.broker.pid ?? null }
    // The groups have joined, every lane is gained, broker and Hooktide are compiled: what a service that runs for days looks like.
    await sleep(3_000)
    await warmUp(world)
    await receiver.expect(base + warm, count)
    await producePaced(world, base, warm)
    const from = read(processes)
    const acks = await producePaced(world, base + warm, count)
    await receiver.reached(1, 30_000)
    const to = read(processes)
    base += warm + count
    await sleep(300)
    return {
      ...figures(await receiver.report()),
      'CPU s/1000': perThousand(from, to, 'sender', count),
      'broker CPU s/1000': perThousand(from, to, 'broker', count),
      'receiver CPU s/1000': perThousand(from, to, 'receiver', count),
      'loop delay p99 ms': await eventLoopP99(hooktide),
      'peak RSS MB': memory(hooktide.pid)?.peakMb ?? null,
      'produce p50 ms': quantile(acks, 0.5),
      'produce p99 ms': quantile(acks, 0.99),
    }
  } finally {
    await hooktide.stop()
  }
}

/** Once through everything at full speed: a broker that has just started takes several times as long for each request. */
async function warmUp(world: World): Promise<void> {
  const { receiver } = world
  const fill = createBodies(bytes)
  await receiver.expect(0, warmDeliveries)
  for (let from = 0; from < warmDeliveries; from += 200) {
    await world.produce(
      Array.from({ length: 200 }, (_, i) => ({ id: `any${(from + i) % subscriptions}`, body: fill(from + i, 0, 0) })),
    )
  }
  await receiver.reached(1, 60_000)
}

/**
 * One send per tick of 5 ms, not awaited by the next: a slow acknowledgement delays nothing that comes after. Resolves
 * to how long each acknowledgement took, ms, ascending: one of the two writes that a delivery goes through, seen from outside.
 */
async function producePaced(world: World, from: number, events: number): Promise<readonly number[]> {
  const fill = createBodies(bytes)
  const startMs = monoMs()
  const sends: Promise<unknown>[] = []
  const took: number[] = []
  let next = 0
  while (next < events) {
    const due = Math.min(events, Math.floor(((monoMs() - startMs) * perSecond) / 1000) + 1)
    if (due > next) {
      const atMs = monoMs()
      const batch = Array.from({ length: due - next }, (_, i) => {
        const n = from + next + i
        return { id: `any${n % subscriptions}`, key: `k${n % 1000}`, body: fill(n, n % 1000, atMs) }
      })
      next = due
      sends.push(world.produce(batch).then(() => took.push(monoMs() - atMs)))
    }
    await sleep(2)
  }
  await Promise.all(sends)
  return took.sort((a, b) => a - b)
}

function figures(report: Report): Figures {
  const waits = report.first.map((ms, i) => ms - (report.produced[i] as number)).sort()
  return {
    'p50 ms': quantile(waits, 0.5),
    'p99 ms': quantile(waits, 0.99),
    'max ms': quantile(waits, 1),
    missing: report.first.length - report.distinct,
    repeats: report.posts - report.distinct,
  }
}
