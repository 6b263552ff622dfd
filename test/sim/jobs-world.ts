import { controlKey } from '../../src/core/control.ts'
import { decodeDelivery } from '../../src/core/delivery.ts'
import { type Job, jobControl } from '../../src/core/job.ts'
import { JobTable } from '../../src/core/job-table.ts'
import { OriginFilter } from '../../src/core/origin-filter.ts'
import { headerMap } from '../../src/core/record.ts'
import { decodeControl } from '../../src/schema/decode.ts'
import { unleash } from './chaos.ts'
import { delivers } from './endpoints.ts'
import { everyFault, type Faults, noFaults } from './faults.ts'
import { between, type Random, randomStream } from './random.ts'
import { World } from './world.ts'

export const partitions = 2

/** A delivery that counts: what a lane does not drop as a repeat. */
export interface Counted {
  readonly event: string
  readonly stream: string
  readonly partition: number
  readonly sequence: number
}

/** Events, workers and jobs on the memory broker; the log says what came of it. */
export class JobsWorld {
  readonly world: World
  readonly random: Random
  /** Names of events by partition, in log order. */
  readonly produced: string[][] = Array.from({ length: partitions }, () => [])
  readonly logs: string[] = []
  #endFaults = () => {}

  constructor(seed: number, faults: Partial<Faults> = {}, workers = 2) {
    this.random = randomStream(seed, 'jobs')
    this.world = new World({
      seed,
      lanes: 2,
      eventPartitions: partitions,
      workers,
      broker: { faults: { ...noFaults, ...faults } },
      onLog: (atMs, worker, level, name, fields) =>
        void this.logs.push(`${atMs.toFixed(0)} ${worker} ${level} ${name} ${JSON.stringify(fields)}`),
    })
  }

  async start(...subscriptions: string[]): Promise<this> {
    for (const id of subscriptions) await this.subscribe(id)
    this.#endFaults = unleash(this.world.broker, { processes: ['operator'] })
    this.world.startAll()
    return this
  }

  subscribe(id: string): Promise<void> {
    this.world.receiver.serve(`https://${id}.test/`, id, delivers())
    return this.world.clock.drive(this.world.subscribe(id, { url: `https://${id}.test/` }))
  }

  /** One event a partition; acknowledged when it resolves. */
  async produce(partition: number): Promise<void> {
    const own = this.produced[partition] as string[]
    const sequence = own.length
    const name = `p${partition}-${sequence}`
    own.push(name)
    const headers = headerMap([
      ['event-type', 'order'],
      ['event-id', name],
      ['event-key', `k${partition}`],
    ])
    const value = Buffer.from(JSON.stringify({ key: `k${partition}`, sequence }))
    await this.world.append({ topic: 'events', partition, key: `k${partition}`, value, headers })
  }

  /** Goes on by itself until `stop`; each partition in order. */
  flow(everyMs: number): { stop(): Promise<void> } {
    let on = true
    const tails = Array.from({ length: partitions }, async (_, partition) => {
      while (on) {
        await this.produce(partition)
        await new Promise<void>((resolve) => this.world.clock.after(between(this.random, 1, 2 * everyMs), resolve))
      }
    })
    return {
      stop: async () => {
        on = false
        await this.world.clock.drive(Promise.all(tails))
      },
    }
  }

  async give(job: Job): Promise<void> {
    const control = jobControl(job)
    const value = Buffer.from(JSON.stringify(control))
    const record = { topic: 'control', partition: 0, key: controlKey(control), value, headers: headerMap() }
    await this.world.clock.drive(this.world.append(record))
  }

  ends(topic = 'events'): number[] {
    return this.world.broker.logs(topic).map(({ end }) => end)
  }

  quiet(): void {
    this.#endFaults()
  }

  /** As a process that starts now would read them. */
  get jobs(): JobTable {
    const table = new JobTable()
    for (const { record } of this.world.broker.committed('control')) {
      const key = String(record?.key)
      const decoded = decodeControl({ value: record?.value ?? null })
      if (key.startsWith('job:') && decoded.ok) table.apply(key, decoded.value)
    }
    return table
  }

  /** Deliveries of a subscription that lanes count, by events partition, in the order of the log. */
  counted(subscription: string): Counted[] {
    const filters = new Map<number, OriginFilter>()
    const found: Counted[] = []
    for (const { record, partition, offset } of this.world.broker.committed('deliveries')) {
      if (record === null || record === undefined) continue
      const delivery = decodeDelivery(record)
      if (!delivery.ok) throw new Error(delivery.reason)
      const filter = filters.get(partition) ?? new OriginFilter()
      filters.set(partition, filter)
      const { origin, subscriptionId, eventId } = delivery.value
      if (!filter.accept(offset, origin, subscriptionId) || subscriptionId !== subscription) continue
      const [p, sequence] = eventId.slice(1).split('-').map(Number) as [number, number]
      found.push({ event: eventId, stream: origin.stream, partition: p, sequence })
    }
    return found
  }

  async settled(id: string, withinMs = 240_000): Promise<boolean> {
    const over = () => {
      const { jobs } = this
      const job = jobs.get(id)
      return job !== undefined && !['running', 'cancelling'].includes(jobs.state(job)) && this.world.drained()
    }
    return this.world.clock.runUntil(over, withinMs)
  }
}

export function replayJob(change: Partial<Job> & Pick<Job, 'parts'>): Job {
  return {
    id: 'j1',
    kind: 'replay',
    by: 'ada',
    atMs: 1_750_000_000_000,
    reason: null,
    cancelledBy: null,
    subscriptionId: 'm',
    tenant: null,
    perSecond: null,
    untilLive: false,
    filter: {},
    ...change,
  }
}

/** Compaction waits for 30 days in `control` (topics/control.yaml), so it is not among them. */
export const jobFaults: Partial<Faults> = { ...everyFault, compactEveryMs: 0 }
