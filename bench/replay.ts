import { controlKey } from '../src/core/control.ts'
import { type Job, jobControl } from '../src/core/job.ts'
import { emptyHeaders } from '../src/core/record.ts'
import type { Subscription } from '../src/core/subscription.ts'
import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load } from './machine.ts'
import { monoMs } from './mono.ts'
import { Receiver } from './receiver.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { quantile } from './stats.ts'
import type { Report } from './tally.ts'
import { type Event, World } from './world.ts'

const livePerSecond = 200
/** Of those also for the new subscription. */
const sharedPerSecond = 20
const quietSeconds = 20
const jobPerSecond = 400
const bytes = 512
const fill = createBodies(bytes)

/** A new subscription takes everything there ever was, then what comes; another one's deliveries are timed meanwhile. */
export const replay: Scenario = {
  name: 'replay',
  about: `events of the past to a new subscription at ${jobPerSecond}/s until live, beside ${livePerSecond} events/s whose deliveries are timed, ${sharedPerSecond} of them for it, too`,
  async run(stage, settings) {
    const rows = new Rows()
    const past = settings.deliveries ?? 100_000
    const world = await World.open(stage, {
      name: 'replay',
      subscriptions: (origin) => [{ id: 'live', url: `${origin}/ok`, ordering: 'key', types: ['live', 'shared'] }],
    })
    const newcomer = await Receiver.start()
    try {
      const { alone, beside, backfill } = await run(world, newcomer, past, settings.note)
      rows.add('live alone', alone)
      rows.add('live beside the replay', beside)
      rows.add('new subscription', backfill)
    } finally {
      await newcomer.close()
      await world.close()
    }
    return {
      rows: rows.all(),
      targets: [
        { row: 'new subscription', figure: 'missing', atMost: 0 },
        { row: 'new subscription', figure: 'repeats', atMost: 0 },
        { row: 'new subscription', figure: 'out of order', atMost: 0 },
        { row: 'live beside the replay', figure: 'p99 ÷ alone', atMost: 1.3 },
      ],
    }
  },
}

async function run(
  world: World,
  newcomer: Receiver,

  past: number,
  note: (line: string) => void,
): Promise<{ alone: Figures; beside: Figures; backfill: Figures }> {
  note(`replay: ${past} events of the past`)
  for (let from = 0; from < past; from += 2_000) {
    await world.produce(
      Array.from({ length: Math.min(2_000, past - from) }, (_, i): Event => eventOf('past', from + i)),
    )
  }
  const hooktide = await world.start()
  try {
    await sleep(3_000)
    const live = new Live(world, past)
    await live.flow(livePerSecond * 5)
    const alone = await live.timed(livePerSecond * quietSeconds)
    note(`replay: live alone p99 ${alone['p99 ms']?.toFixed(0)} ms, load ${load().toFixed(1)}`)

    // As long as the replay takes, and some seconds more.
    const behind = past + live.shared
    const seconds = Math.ceil(behind / (jobPerSecond - sharedPerSecond)) + 10
    const total = behind + seconds * sharedPerSecond
    note(`replay: live beside it for ${seconds} s, load ${load().toFixed(1)}`)
    await newcomer.expect(0, total)
    const startMs = monoMs()
    await begin(world, newcomer)
    const beside = await live.timed(seconds * livePerSecond)
    const endMs = await newcomer.reached(1, 120_000).catch(() => null)
    // A double would come about now.
    await sleep(3_000)
    const report = await newcomer.report()
    const ratio = (beside['p99 ms'] as number) / (alone['p99 ms'] as number)
    return {
      alone,
      beside: { ...beside, 'p99 ÷ alone': ratio },
      backfill: {
        deliveries: total,
        missing: total - report.distinct,
        repeats: report.posts - report.distinct,
        'out of order': report.outOfOrder,
        'all there after s': endMs === null ? null : (endMs - startMs) / 1000,
      },
    }
  } finally {
    await hooktide.stop()
  }
}

/** The job, then its subscription, as `hooktide subscriptions add --backfill all` does. */
async function begin(world: World, newcomer: Receiver): Promise<void> {
  const topic = `${world.prefix}events`
  const count = (await world.kafka.partitions([topic])).get(topic) ?? 1
  const job: Job = {
    id: 'bench',
    kind: 'replay',
    by: 'bench',
    atMs: Date.now(),
    reason: null,
    cancelledBy: null,
    subscriptionId: 'newcomer',
    tenant: null,
    perSecond: jobPerSecond,
    untilLive: true,
    parts: new Map(Array.from({ length: count }, (_, p) => [`${topic}/${p}`, { from: 0, to: null }])),
    filter: {},
  }
  const control = jobControl(job)
  const subscription: Subscription = {
    ...(await world.subscription('live')),
    id: 'newcomer',
    url: `${newcomer.origin}/ok`,
    types: ['past', 'shared'],
  }
  const producer = world.kafka.producer()
  const write = (name: string, key: string, value: unknown) =>
    producer.send([
      {
        topic: world.prefix + name,
        partition: 0,
        key,
        value: Buffer.from(JSON.stringify(value)),
        headers: emptyHeaders,
      },
    ])
  await write('control', controlKey(control), control)
  await write('subscriptions', subscription.id, subscription)
  await producer.close()
}

function eventOf(id: string, n: number, atMs = 0): Event {
  return { id, key: `k${n % 1000}`, body: fill(n, n % 1000, atMs) }
}

/** Events at the pace of live traffic: a tenth for the new subscription, too, numbered on from the past; the others apart. */
class Live {
  /** Of the events that the new subscription takes, too. */
  shared = 0
  #own = 0
  readonly #world: World
  readonly #past: number

  constructor(world: World, past: number) {
    this.#world = world
    this.#past = past
  }

  async timed(events: number): Promise<Figures> {
    const own = events - events / sharing
    await this.#world.receiver.expect(ownFrom + this.#own, own)
    await this.flow(events)
    await this.#world.receiver.reached(1, 60_000)
    return figures(await this.#world.receiver.report())
  }

  async flow(events: number): Promise<void> {
    const startMs = monoMs()
    const sends: Promise<unknown>[] = []
    for (let next = 0; next < events; ) {
      const due = Math.min(events, Math.floor(((monoMs() - startMs) * livePerSecond) / 1000) + 1)
      if (due > next) {
        const atMs = monoMs()
        sends.push(this.#world.produce(Array.from({ length: due - next }, (_, i) => this.#event(next + i, atMs))))
        next = due
      }
      await sleep(2)
    }
    await Promise.all(sends)
  }

  #event(nth: number, atMs: number): Event {
    if (nth % sharing === 0) return eventOf('shared', this.#past + this.shared++, atMs)
    return eventOf('live', ownFrom + this.#own++, atMs)
  }
}

const sharing = livePerSecond / sharedPerSecond
const ownFrom = 5_000_000

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
