import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load } from './machine.ts'
import { monoMs } from './mono.ts'
import { Raw } from './raw.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { runRaw } from './throughput.ts'
import { type Stage, World } from './world.ts'

const subscriptions = 10_000

/** One event that 10,000 subscriptions want, from its production to the last receipt. */
export const fanout: Scenario = {
  name: 'fanout',
  about: `one event of 1 KiB to ${subscriptions} subscriptions, produce to last receipt, 256 open; raw: as many POSTs`,
  async run(stage, settings) {
    const rows = new Rows()
    const raw = new Raw()
    const world = await World.open(stage, {
      name: 'fanout',
      deliverer: { perOrigin: 256 },
      http: { maxSocketsPerOrigin: 256 },
      subscriptions: (origin) =>
        Array.from({ length: subscriptions }, (_, i) => ({
          id: `fan${i}`,
          types: ['fan'],
          url: `${origin}/ok`,
          ordering: 'none' as const,
        })),
    })
    try {
      for (let round = 0; round < settings.rounds; round++) {
        settings.note(`fanout, round ${round + 1} of ${settings.rounds}, load ${load().toFixed(1)}`)
        const reference = await runRaw(world, raw, 256, subscriptions, stage)
        rows.add('raw', { 'ms in all': (subscriptions * 1000) / (reference.overall ?? Number.NaN) })
        rows.add('Hooktide', await run(world, stage, round, reference))
      }
    } finally {
      await raw.close()
      await world.close()
    }
    return { rows: rows.all(), targets: [{ row: 'Hooktide', figure: 'ratio', atLeast: 0.5 }] }
  },
}

async function run(world: World, _stage: Stage, round: number, reference: Figures): Promise<Figures> {
  const fill = createBodies(1024)
  // All deliveries of the event have its number: what is counted are POSTs.
  const n = 9_000_000 + round * 2
  const hooktide = await world.start()
  try {
    await sleep(3_000)
    await world.receiver.expect(n, 1)
    await world.produce([{ id: 'fan', body: fill(n, 0, 0) }])
    await posts(world)
    await world.receiver.expect(n + 1, 1)
    const startMs = monoMs()
    await world.produce([{ id: 'fan', body: fill(n + 1, 0, 0) }])
    const ms = (await posts(world)) - startMs
    const rawMs = (subscriptions * 1000) / (reference.overall ?? Number.NaN)
    return { ratio: rawMs / ms, 'ms in all': ms, 'POSTs/s': (subscriptions * 1000) / ms }
  } finally {
    await hooktide.stop()
  }
}

/** When all had arrived, to 10 ms. */
async function posts(world: World): Promise<number> {
  const deadlineMs = monoMs() + 60_000
  for (;;) {
    const report = await world.receiver.report()
    if (report.posts >= subscriptions) return monoMs()
    if (monoMs() > deadlineMs) throw new Error(`only ${report.posts} of ${subscriptions} had arrived after a minute`)
    await sleep(10)
  }
}
