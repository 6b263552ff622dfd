import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { monoMs } from './mono.ts'
import { plainConsumer } from './plain-consumer.ts'
import { Raw } from './raw.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { createZipf } from './stats.ts'
import { cores, type Processes, perThousand, type Reading, read } from './usage.ts'
import { type Event, type Stage, World } from './world.ts'

const bytes = 1024
const subscriptions = 100
const keys = 200
const patienceMs = 110_000

/** `steady` is what arrives from the first fifth to the last: start-up and warm-up are before it. */
export const throughput: Scenario = {
  name: 'throughput',
  about: `events of ${bytes} B for ${subscriptions} subscriptions wait in Kafka; Hooktide is started; until all are received`,
  async run(stage, settings) {
    const rows = new Rows()
    const opens = [...new Set([64, settings.concurrency])]
    const worlds: { open: number; world: World }[] = []
    const raw = new Raw()
    try {
      for (const open of opens) worlds.push({ open, world: await openWorld(stage, open) })
      const [first] = worlds
      if (first !== undefined) {
        settings.note('throughput, warming up')
        await runRaw(first.world, raw, 64, 5_000, stage)
        // A broker that has just started takes several times as long for each request.
        await runHooktide(first.world, stage, { count: 20_000, ordered: false })
      }
      const startMs = monoMs()
      for (let round = 0; round < settings.rounds; round++) {
        if (round > 0 && monoMs() - startMs > settings.patienceMs) {
          settings.note(`throughput: no more rounds, the machine is slow`)
          break
        }
        settings.note(`throughput, round ${round + 1} of ${settings.rounds}, load ${load().toFixed(1)}`)
        for (const { open, world } of worlds) {
          const count = settings.deliveries ?? 40_000
          const reference = await runRaw(world, raw, open, count, stage)
          rows.add(`raw, ${open} open`, reference)
          const { workers } = settings
          const suffix = suffixOf(workers)
          const plain = await runHooktide(world, stage, { count, ordered: false, reference, workers })
          rows.add(`Hooktide, ${open} open${suffix}`, plain)
          if (open !== settings.concurrency) continue
          const ordered = await runHooktide(world, stage, { count, ordered: true, reference, workers })
          rows.add(`Hooktide, ${open} open, ${keys} keys in order${suffix}`, ordered)
        }
      }
      const { world } = worlds[0] as { world: World }
      const reading = await plainConsumer(stage, `${world.prefix}events`, settings.deliveries ?? 40_000)
      if (reading !== null) rows.add('Java consumer, reading only', reading)
      else settings.note('no Java consumer to compare with: it needs a JDK and the broker that Maven fetched')
    } finally {
      await raw.close()
      for (const { world } of worlds) await world.close()
    }
    return {
      rows: rows.all(),
      targets: [
        { row: `Hooktide, ${settings.concurrency} open${suffixOf(settings.workers)}`, figure: 'ratio', atLeast: 0.5 },
      ],
    }
  },
}

function suffixOf(workers: number): string {
  return workers > 1 ? `, ${workers} workers` : ''
}

/** One per number of open POSTs, which is configuration; rounds follow each other on it. */
export function openWorld(stage: Stage, open: number): Promise<World> {
  return World.open(stage, {
    name: `throughput${open}`,
    deliverer: { maxInFlight: open, perOrigin: open },
    http: { maxSocketsPerOrigin: open },
    subscriptions: (origin) =>
      Array.from({ length: subscriptions * 2 }, (_, i) => ({
        id: i < subscriptions ? `any${i}` : `key${i - subscriptions}`,
        url: `${origin}/ok`,
        ordering: i < subscriptions ? ('none' as const) : ('key' as const),
      })),
  })
}

/** Numbers of deliveries never come again, so that a late repeat of one round counts in no other. */
let base = 0

export async function runRaw(world: World, raw: Raw, open: number, count: number, stage: Stage): Promise<Figures> {
  const { receiver } = world
  const processes: Processes = { sender: raw.pid, receiver: receiver.pid, broker: stage.broker.pid ?? null }
  const readings = new Map<number, Reading>()
  const from = base
  base += count
  await receiver.expect(from, count, (mark) => readings.set(mark, read(processes)))
  const startMs = monoMs()
  await raw.run({ origin: receiver.origin, path: '/ok', open, base: from, count, bytes })
  const endMs = await receiver.reached(1, 5_000)
  return figures({ readings, count, overallMs: endMs - startMs, processes })
}

export interface HooktideRun {
  readonly count: number
  readonly ordered: boolean
  readonly reference?: Figures
  readonly workers?: number
  readonly nodeFlags?: readonly string[]
  /** Told of the window that counts as steady, `monoMs`. */
  readonly steady?: (fromMs: number, toMs: number) => void
}

export async function runHooktide(world: World, stage: Stage, run: HooktideRun): Promise<Figures> {
  const { receiver } = world
  const { count } = run
  const fill = createBodies(bytes)
  const zipf = createZipf(keys)
  const from = base
  base += count
  const events = Array.from({ length: count }, (_, i): Event => {
    if (!run.ordered) return { id: `any${i % subscriptions}`, body: fill(from + i, i % subscriptions, 0) }
    const key = zipf()
    return { id: `key${key % subscriptions}`, key: `k${key}`, body: fill(from + i, key, 0) }
  })
  await world.produce(events)
  // The broker is not to be measured at what it does after that.
  await sleep(1_000)
  const processes: Record<string, number | null> = {
    sender: null,
    receiver: receiver.pid,
    broker: stage.broker.pid ?? null,
  }
  const readings = new Map<number, Reading>()
  await receiver.expect(from, count, (mark) => readings.set(mark, read(processes)))
  const spawnMs = monoMs()
  const hooktide = await world.start({ nodeFlags: run.nodeFlags ?? [], workers: run.workers ?? 1 })
  processes.sender = hooktide.pid
  try {
    const fifthMs = await receiver.reached(0.2, patienceMs)
    const endMs = await receiver.reached(1, patienceMs)
    run.steady?.(fifthMs, endMs)
    const eventLoop = await eventLoopP99(hooktide)
    const peakMb = memory(hooktide.pid)?.peakMb ?? null
    // What is repeated comes now.
    await sleep(300)
    const report = await receiver.report()
    const all = figures({ readings, count, overallMs: endMs - hooktide.startedAtMs, processes })
    const { reference } = run
    const ratio =
      reference === undefined
        ? {}
        : {
            ratio: (all.steady ?? Number.NaN) / (reference.steady ?? Number.NaN),
            'ratio by CPU': allCpu(reference) / allCpu(all),
          }
    return {
      ...ratio,
      ...all,
      'start s': (hooktide.startedAtMs - spawnMs) / 1000,
      'peak RSS MB': peakMb,
      'loop delay p99 ms': eventLoop,
      repeats: report.posts - report.distinct,
      ...(run.ordered ? { 'out of order': report.outOfOrder } : {}),
    }
  } finally {
    await hooktide.stop()
  }
}

/** Of all processes together: what the rates would be in proportion to if nobody else used the machine. */
function allCpu(figures: Figures): number {
  return processNames.reduce((sum, name) => sum + (figures[name] ?? Number.NaN), 0)
}

const processNames = ['CPU s/1000', 'broker CPU s/1000', 'receiver CPU s/1000']

export async function eventLoopP99(hooktide: { metrics(): Promise<(name: string) => number> }): Promise<number> {
  return (await hooktide.metrics())('nodejs_eventloop_lag_p99_seconds') * 1000
}

function figures(run: {
  readings: ReadonlyMap<number, Reading>
  count: number
  overallMs: number
  processes: Processes
}): Figures {
  const fifth = run.readings.get(0.2)
  const end = run.readings.get(1)
  if (fifth === undefined || end === undefined) throw new Error('the receiver has not told when it had all')
  const steady = run.count - Math.ceil(run.count * 0.2)
  return {
    steady: (steady * 1000) / (end.atMs - fifth.atMs),
    overall: (run.count * 1000) / run.overallMs,
    'CPU s/1000': perThousand(fifth, end, 'sender', steady),
    'broker CPU s/1000': perThousand(fifth, end, 'broker', steady),
    'receiver CPU s/1000': perThousand(fifth, end, 'receiver', steady),
    'receiver cores': cores(fifth, end, 'receiver'),
  }
}
