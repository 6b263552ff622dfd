import type { Subscription } from '../../src/core/subscription.ts'
import { assemblePipeline, type Pipeline, type PipelineSettings } from '../../src/pipeline/assemble.ts'
import type { Fields, Level } from '../../src/ports.ts'
import { decodeLaneState, decodeSubscription } from '../../src/schema/decode.ts'
import { unleash } from './chaos.ts'
import type { Endpoint } from './endpoints.ts'
import { collectEvidence, type Evidence, type Expected, type Layout } from './evidence.ts'
import { FakeClock } from './fake-clock.ts'
import { type Faults, noFaults } from './faults.ts'
import { MemoryBroker } from './memory-broker.ts'
import { between, type Random, randomStream } from './random.ts'
import { Receiver } from './receiver.ts'

export interface SimSubscription {
  readonly id: string
  readonly ordering: Subscription['ordering']
  readonly endpoint: Endpoint
  readonly maxAttempts?: number
}

export interface SimOptions {
  readonly seed: number
  readonly lanes: number
  readonly workers: number
  readonly eventPartitions?: number
  readonly subscriptions: readonly SimSubscription[]
  readonly faults?: Partial<Faults>
}

export const simTiers = [
  { name: '1s', delayMs: 1_000 },
  { name: '5s', delayMs: 5_000 },
  { name: '30s', delayMs: 30_000 },
]

const topics = {
  events: ['events'],
  subscriptions: 'subscriptions',
  deliveries: 'deliveries',
  tiers: simTiers.map(({ name }) => `retry-${name}`),
  parked: 'parked',
  laneState: 'lane-state',
  dead: 'dead',
  attempts: 'attempts',
  rejected: 'rejected',
}

const layout: Layout = {
  group: 'deliverer',
  deliveries: topics.deliveries,
  tiers: simTiers.map(({ name, delayMs }) => ({ topic: `retry-${name}`, delayMs })),
  parked: topics.parked,
  dead: topics.dead,
  attempts: topics.attempts,
  laneState: topics.laneState,
}

function settingsOf(options: SimOptions): PipelineSettings {
  return {
    roles: { router: true, deliverer: true },
    topics,
    lanes: options.lanes,
    rejectedPartitions: 1,
    tiers: simTiers,
    policy: { maxAttempts: 5, baseMs: 2_000, factor: 3, capMs: 60_000, retryAfterCapMs: 60_000 },
    groups: { router: 'router', deliverer: 'deliverer' },
    transactionalIdPrefix: 'lane.',
    router: {
      maxBytes: 262_144,
      maxHeaders: 64,
      maxWaitingRecords: 500,
      maxWaitingBytes: 1_000_000,
      maxWriteBytes: 100_000,
      commitEveryMs: 1_000,
    },
    executor: {
      maxInFlight: 32,
      maxInFlightBytes: 1_000_000,
      retryShare: 0.3,
      maxPerSubscription: 8,
      maxPerOrigin: 16,
    },
    flow: { maxRecords: 200, maxBytes: 1_000_000, tierMaxRecords: 50, tierMaxBytes: 250_000 },
    maxBytes: 16_000_000,
    commit: { records: 50, everyMs: 1_000, movesEveryMs: 250 },
    lines: { maxHeld: 8, maxBuffer: 8, maxOpenUnordered: 4 },
    maxWaitingPerSubscription: 64,
    maxSpan: 1_024,
    drainMs: 7_000,
    leaseMs: 7_000,
  }
}

/** The real pipeline in simulated processes, on the memory broker, with the fake receiver and its journal. */
export class PipelineWorld {
  readonly clock: FakeClock
  readonly broker: MemoryBroker
  readonly receiver: Receiver
  readonly expected: Expected[] = []
  /** Log lines of all workers, newest last. */
  readonly log: string[] = []
  readonly fatal: string[] = []
  readonly #options: SimOptions
  readonly #random: Random
  readonly #pipelines = new Map<string, Pipeline>()
  readonly #sequences = new Map<string, number>()
  #stopFaults: () => void = () => {}

  constructor(options: SimOptions) {
    const { seed, lanes } = options
    this.#options = options
    this.#random = randomStream(seed, 'world')
    this.clock = new FakeClock({ seed })
    this.broker = new MemoryBroker(this.clock, { seed, faults: options.faults ?? {} })
    this.receiver = new Receiver(this.clock, { seed })
    this.broker.createTopic('events', { partitions: options.eventPartitions ?? 2 })
    this.broker.createTopic(topics.subscriptions, { partitions: 1, compacted: true })
    this.broker.createTopic(topics.rejected, { partitions: 1 })
    for (const topic of [topics.deliveries, topics.parked, topics.dead, topics.attempts]) {
      this.broker.createTopic(topic, { partitions: lanes })
    }
    for (const topic of topics.tiers) this.broker.createTopic(topic, { partitions: lanes, appendTime: true })
    this.broker.createTopic(topics.laneState, { partitions: lanes, compacted: true })
    this.broker.dice.setFor('outside', noFaults)
    this.broker.onCrash((id) => {
      this.#note(id, 'error', 'crash')
      if (this.#pipelines.delete(id)) this.clock.after(between(this.#random, 500, 8_000), () => this.#start(id))
    })
  }

  /** Writes the subscriptions, starts the workers, lets the faults loose. */
  async start(): Promise<void> {
    const producer = this.broker.client('outside').producer()
    for (const { id, ordering, endpoint, maxAttempts } of this.#options.subscriptions) {
      const url = `http://${id}.test/`
      this.receiver.serve(url, id, endpoint)
      const record: Subscription = {
        v: 1,
        id,
        tenant: 'default',
        url,
        types: ['*'],
        ordering,
        status: 'active',
        secrets: [{ ref: 'env:SECRET' }],
        ...(maxAttempts === undefined ? {} : { retry: { maxAttempts } }),
        createdAtMs: this.clock.now(),
        updatedAtMs: this.clock.now(),
      }
      const value = Buffer.from(JSON.stringify(record))
      await this.clock.drive(
        producer.send([{ topic: topics.subscriptions, partition: 0, key: id, value, headers: {} }]),
      )
    }
    this.#stopFaults = unleash(this.broker)
    for (let i = 0; i < this.#options.workers; i++) this.#start(`w${i}`)
  }

  /** One event of `key`; resolves when it is acknowledged. */
  async produce(key: string): Promise<void> {
    const sequence = this.#sequences.get(key) ?? 0
    this.#sequences.set(key, sequence + 1)
    const partition = key.charCodeAt(key.length - 1) % (this.#options.eventPartitions ?? 2)
    const headers = {
      'event-type': Buffer.from('order.changed'),
      'event-id': Buffer.from(`${key}-${sequence}`),
      'event-key': Buffer.from(key),
    }
    const value = Buffer.from(JSON.stringify({ key, sequence }))
    await this.broker
      .client('outside')
      .producer()
      .send([{ topic: 'events', partition, key, value, headers }])
    for (const { id, ordering } of this.#options.subscriptions) {
      this.expected.push({ subscription: id, key, sequence, ordered: ordering !== 'none' })
    }
  }

  /** Events of a few keys, one every so often. */
  async produceAll(count: number, keys: number, everyMs: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await this.clock.drive(this.produce(`k${between(this.#random, 0, keys - 1)}`))
      await this.clock.advance(this.#random() * 2 * everyMs)
    }
  }

  /** From now on nothing goes wrong any more. */
  calm(): void {
    this.#stopFaults()
  }

  evidence(): Evidence {
    return collectEvidence(this.broker, layout, { posts: this.receiver.posts, expected: this.expected })
  }

  /** Takes every worker down in good order. */
  async stop(): Promise<void> {
    for (const pipeline of this.#pipelines.values()) await this.clock.drive(pipeline.stop())
    this.#pipelines.clear()
  }

  #start(id: string): void {
    const kafka = this.broker.client(id)
    const { process } = kafka
    const again = () => {
      if (process.alive) this.broker.crash(id)
    }
    const pipeline = assemblePipeline(settingsOf(this.#options), {
      kafka,
      clock: process,
      observer: {
        log: (level, name, fields) => this.#note(id, level, name, fields),
        count: () => {},
        time: () => {},
      },
      sender: this.receiver.sender(process),
      secrets: { keys: () => [{ kind: 'v1', sign: () => 'signature' }] },
      decodeSubscription,
      decodeLaneState,
      originOf: (url) => new URL(url).origin,
      gone: () => {},
      // The service ends with it, and its supervisor starts it again.
      onFatal: (error) => {
        this.fatal.push(`${id}: ${error.message}`)
        again()
      },
    })
    this.#pipelines.set(id, pipeline)
    pipeline.start().catch((error: Error) => {
      this.#note(id, 'error', 'start failed', { error: error.message })
      again()
    })
  }

  #note(id: string, level: Level, name: string, fields: Fields = {}): void {
    const rest = Object.entries(fields).map(([key, value]) => ` ${key}=${value}`)
    this.log.push(`${this.clock.mono().toFixed(1)} ${id} ${level} ${name}${rest.join('')}`)
  }
}
