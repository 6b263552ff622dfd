import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { monoMs } from './mono.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { quantile } from './stats.ts'
import { eventLoopP99 } from './throughput.ts'
import { perThousand, read } from './usage.ts'
import { type Event, type Stage, World } from './world.ts'

const perSecond = 1_000
const seconds = 20
const warmSeconds = 5
const subscriptions = 100
const bytes = 1024

/** In turns: every subscription answers, then the first tenth of them answers 503, or not at all, from the start. */
export const outage: Scenario = {
  name: 'outage',
  about: `${perSecond} events/s for ${seconds} s over ${subscriptions} subscriptions, the first attempts of the ${subscriptions * 0.9} that answer; with the other tenth answering, failing, silent`,
  async run(stage, settings) {
    const rows = new Rows()
    for (let round = 0; round < Math.min(2, settings.rounds); round++) {
      for (const [name, path] of [
        ['all answer', '/ok'],
        ['a tenth answers 503', '/status/503'],
        ['a tenth is silent', '/hang'],
      ] as const) {
        settings.note(`outage, ${name}, load ${load().toFixed(1)}`)
        rows.add(name, await run(stage, path))
      }
    }
    const base = rows.all().find(({ name }) => name === 'all answer')?.rounds[0]?.['p99 ms']
    const most = typeof base === 'number' ? base * 1.2 : Number.NaN
    return {
      rows: rows.all(),
      targets: ['a tenth answers 503', 'a tenth is silent'].map((row) => ({ row, figure: 'p99 ms', atMost: most })),
    }
  },
}

async function run(stage: Stage, path: string): Promise<Figures> {
  const world = await World.open(stage, {
    name: 'outage',
    deliverer: { drain: '1s', perOrigin: 256 },
    http: { allowPrivate: ['127.0.0.1', 'localhost'], maxSocketsPerOrigin: 256 },
    subscriptions: (origin) =>
      Array.from({ length: subscriptions }, (_, i) => ({
        id: `any${i}`,
        // Another host name: the circuit of their origin is not what keeps the others going.
        url: i < subscriptions / 10 ? `${origin.replace('127.0.0.1', 'localhost')}${path}` : `${origin}/ok`,
        ordering: 'key' as const,
      })),
  })
  const count = perSecond * seconds
  const warm = perSecond * warmSeconds
  const hooktide = await world.start()
  const processes = { sender: hooktide.pid, broker: stage.broker.pid ?? null }
  try {
    await sleep(3_000)
    await paced(world, 0, warm)
    await world.receiver.expect(warm, count)
    const from = read(processes)
    await paced(world, warm, count)
    await sleep(2_000)
    const to = read(processes)
    const report = await world.receiver.report()
    const waits: number[] = []
    let missing = 0
    for (let i = 0; i < count; i++) {
      if ((warm + i) % subscriptions < subscriptions / 10) continue
      const first = report.first[i] as number
      if (first === 0) missing++
      else waits.push(first - (report.produced[i] as number))
    }
    waits.sort((a, b) => a - b)
    return {
      'p50 ms': quantile(waits, 0.5),
      'p99 ms': quantile(waits, 0.99),
      'max ms': quantile(waits, 1),
      missing,
      'CPU s/1000': perThousand(from, to, 'sender', count),
      'broker CPU s/1000': perThousand(from, to, 'broker', count),
      'loop delay p99 ms': await eventLoopP99(hooktide),
      'peak RSS MB': memory(hooktide.pid)?.peakMb ?? null,
    }
  } finally {
    await hooktide.stop(3_000)
    await world.close()
  }
}

async function paced(world: World, from: number, events: number): Promise<void> {
  const fill = createBodies(bytes)
  const startMs = monoMs()
  const sends: Promise<unknown>[] = []
  for (let next = 0; next < events; await sleep(2)) {
    const due = Math.min(events, Math.floor(((monoMs() - startMs) * perSecond) / 1000) + 1)
    if (due === next) continue
    const atMs = monoMs()
    const batch = Array.from({ length: due - next }, (_, i): Event => {
      const n = from + next + i
      return { id: `any${n % subscriptions}`, key: `k${n % 1000}`, body: fill(n, n % 1000, atMs) }
    })
    next = due
    sends.push(world.produce(batch))
  }
  await Promise.all(sends)
}
