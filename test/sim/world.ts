import { settledMs } from '../../src/core/freshness.ts'
import type { LineState } from '../../src/core/lane-state.ts'
import { headerMap, type OutRecord } from '../../src/core/record.ts'
import type { Subscription, SubscriptionStatus } from '../../src/core/subscription.ts'
import { assemblePipeline, type Pipeline } from '../../src/pipeline/assemble.ts'
import type { PipelineDeps } from '../../src/pipeline/pipeline-deps.ts'
import type { PipelineSettings } from '../../src/pipeline/pipeline-settings.ts'
import type { Kafka, Observer } from '../../src/ports.ts'
import { decodeControl, decodeLaneState, decodeSubscription } from '../../src/schema/decode.ts'
import { openAccess } from '../support/access.ts'
import type { Layout } from './evidence.ts'
import { FakeClock } from './fake-clock.ts'
import { MemoryBroker, type MemoryBrokerOptions } from './memory-broker.ts'
import { MemoryObjects } from './memory-objects.ts'
import { startMs } from './plan.ts'
import { Receiver } from './receiver.ts'

/** A deliberate mistake around the pipeline's outside world; see `plants.ts`. */
export interface Mistake {
  kafka?(kafka: Kafka): Kafka
  deps?(deps: PipelineDeps): PipelineDeps
}

export interface WorldOptions {
  readonly seed: number
  readonly lanes: number
  readonly eventPartitions: number
  readonly workers: number
  readonly settings?: Partial<PipelineSettings>
  readonly broker?: MemoryBrokerOptions
  readonly mistake?: Mistake
  readonly timeoutMs?: number
  /** Every log line of every worker. */
  readonly onLog?: (atMs: number, worker: string, level: string, name: string, fields: object) => void
}

export const tierDelays = { 'retry-1s': 1_000, 'retry-4s': 4_000 } as const

export const layout: Layout = {
  group: 'deliverers',
  deliveries: 'deliveries',
  tiers: Object.entries(tierDelays).map(([topic, delayMs]) => ({ topic, delayMs })),
  parked: 'parked',
  dead: 'dead',
  attempts: 'attempts',
  laneState: 'lane-state',
}

const topics = {
  deliveries: 'deliveries',
  tiers: Object.keys(tierDelays),
  parked: 'parked',
  laneState: 'lane-state',
  dead: 'dead',
  attempts: 'attempts',
  rejected: 'rejected',
  events: ['events'],
  subscriptions: 'subscriptions',
  control: 'control',
}

const usualTimeoutMs = 2_000

/** So narrow that every way to write down what is done is taken. */
export function spanOf(max: number): PipelineSettings['span'] {
  return { max, bits: 32, metadata: 16 }
}

export function settingsOf(lanes: number, more: Partial<PipelineSettings> = {}): PipelineSettings {
  return {
    roles: { router: true, deliverer: true },
    topics,
    lanes,
    rejectedPartitions: lanes,
    tiers: Object.entries(tierDelays).map(([name, delayMs]) => ({ name, delayMs })),
    maxEventAgeMs: 0,
    policy: { maxAttempts: 4, baseMs: 500, factor: 3, capMs: 6_000, retryAfterCapMs: 10_000 },
    groups: { router: 'routers', deliverer: 'deliverers' },
    transactionalIdPrefix: 'lane-',
    router: {
      maxBytes: 262_144,
      maxHeaders: 64,
      maxClaimBytes: 1_000_000,
      maxWaitingRecords: 60,
      maxWaitingBytes: 1 << 20,
      maxWriteBytes: 64 << 10,
      commitEveryMs: 500,
    },
    executor: {
      maxInFlight: 16,
      maxInFlightBytes: 1 << 20,
      retryShare: 0.3,
      maxPerSubscription: 6,
      maxPerOrigin: 8,
      maxPerOriginPerSecond: null,
    },
    flow: { maxRecords: 200, maxBytes: 1 << 20, tierMaxRecords: 50, tierMaxBytes: 1 << 20 },
    maxBytes: 8 << 20,
    commit: { records: 100, everyMs: 400, movesEveryMs: 150 },
    lines: { maxHeld: 8, maxBuffer: 8, maxBuffered: 20, maxOpenUnordered: 4 },
    crowd: { minShare: 20, keep: 8, behind: 40 },
    circuit: { failures: 0, failureRate: 1, minSamples: 50, windowMs: 30_000, openMs: 2_000, maxOpenMs: 20_000 },
    failing: { disableAfterMs: 5 * 86_400_000, failingAfterMs: 3_600_000 },
    reservedTypes: 'hooktide.',
    totalTimeoutMs: usualTimeoutMs,
    claims: { maxOpenBytes: 1_000_000, fetchMs: 3_000 },
    deadCredit: 1_000,
    successLines: 1_000_000,
    span: spanOf(1_024),
    drainMs: 3_500,
    stopDrainMs: 3_500,
    leaseMs: 4_000,
    ...more,
  }
}

interface Worker {
  readonly id: string
  pipeline: Pipeline | null
}

/** The whole pipeline on the memory broker: workers that die and come back, subscriptions, endpoints and producers. */
export class World {
  readonly clock: FakeClock
  readonly broker: MemoryBroker
  readonly receiver: Receiver
  readonly objects: MemoryObjects
  readonly workers: Worker[] = []
  readonly fatal: string[] = []
  /** As they are wanted to be; what is being written may not be known to anybody yet. */
  readonly subscriptions = new Map<string, Subscription>()
  /** As they are acknowledged. */
  readonly acknowledged = new Map<string, Subscription>()
  /** Writes begun and writes acknowledged, per subscription. */
  readonly writes = new Map<string, { begun: number; done: number }>()
  /** Disabled at some time, by whomever. */
  readonly disabled = new Set<string>()
  readonly #options: WorldOptions
  readonly #settings: PipelineSettings
  readonly #operator: ReturnType<Kafka['producer']>
  onGone: (id: string) => void = () => {}
  /** A process obeys an order from now on, or knows that it was taken back. */
  onApplied: (key: string, order: string, process: string, incarnation: number) => void = () => {}
  #held = false

  constructor(options: WorldOptions) {
    this.#options = options
    // A claimed body's POST gets what is left of it, any other the sender's own.
    const totalTimeoutMs = options.timeoutMs ?? usualTimeoutMs
    this.#settings = settingsOf(options.lanes, { totalTimeoutMs, ...options.settings })
    const { seed, lanes } = options
    this.clock = new FakeClock({ seed, startMs })
    this.broker = new MemoryBroker(this.clock, {
      seed,
      sessionTimeoutMs: 6_000,
      rebalanceTimeoutMs: 8_000,
      transactionTimeoutMs: 10_000,
      requestTimeoutMs: 2_000,
      longPollMs: 5_000,
      ...options.broker,
    })
    this.receiver = new Receiver(this.clock, { seed, timeoutMs: totalTimeoutMs })
    this.objects = new MemoryObjects(this.clock, seed)
    this.broker.createTopic('events', { partitions: options.eventPartitions })
    for (const topic of ['deliveries', 'parked', 'dead', 'attempts', 'rejected']) {
      this.broker.createTopic(topic, { partitions: lanes })
    }
    for (const topic of topics.tiers) this.broker.createTopic(topic, { partitions: lanes, appendTime: true })
    this.broker.createTopic('lane-state', { partitions: lanes, compacted: true })
    this.broker.createTopic('control', { partitions: 1, compacted: true })
    this.broker.createTopic('subscriptions', { partitions: 1, compacted: true })
    this.broker.dice.setFor('operator', quietProcess)
    this.#operator = this.broker.client('operator').producer()
    this.broker.onCrash((id) => this.#crashed(id))
    for (let i = 0; i < options.workers; i++) this.workers.push({ id: `w${i}`, pipeline: null })
  }

  get settings(): PipelineSettings {
    return this.#settings
  }

  startAll(): void {
    this.#held = false
    for (const worker of this.workers) this.start(worker)
  }

  start(worker: Worker): void {
    if (worker.pipeline !== null || this.#held) return
    const { mistake } = this.#options
    const client = this.broker.client(worker.id)
    const { process } = client
    const deps: PipelineDeps = {
      kafka: mistake?.kafka?.(client) ?? client,
      clock: process,
      observer: this.#observer(worker.id, process.incarnation),
      sender: this.receiver.sender(process),
      secrets: { keys: () => [{ kind: 'v1', sign: () => '' }], text: () => null },
      accesses: openAccess,
      objects: this.objects.for(process),
      tracer: null,
      decodeSubscription,
      decodeControl,
      decodeLaneState,
      originOf: (url) => new URL(url).origin,
      troubles: { disabled: ({ id }) => this.#gone(id), failing: () => undefined, dead: () => undefined },
      onFatal: (error) => this.fatal.push(`${worker.id}: ${error.stack}`),
    }
    const pipeline = assemblePipeline(this.#settings, mistake?.deps?.(deps) ?? deps)
    worker.pipeline = pipeline
    pipeline.start().catch(() => {
      // A start that fails ends the process; whoever runs it starts it again.
      if (worker.pipeline === pipeline) this.broker.crash(worker.id)
    })
  }

  /** SIGTERM, and a new process afterwards. */
  async restart(worker: Worker, pauseMs: number): Promise<void> {
    const { pipeline } = worker
    if (pipeline === null) return
    const process = this.broker.process(worker.id)
    await pipeline.stop()
    if (worker.pipeline !== pipeline) return
    process.kill()
    worker.pipeline = null
    this.clock.after(pauseMs, () => this.start(worker))
  }

  /** All workers die and stay down until `startAll`. */
  holdAll(): void {
    this.#held = true
    for (const worker of this.workers) {
      if (worker.pipeline !== null) this.broker.crash(worker.id)
    }
  }

  #crashed(id: string): void {
    const worker = this.workers.find((w) => w.id === id)
    if (worker === undefined) return
    worker.pipeline = null
    const afterMs = 100 + this.broker.dice.stream('restart')() * 4_000
    this.clock.after(afterMs, () => this.start(worker))
  }

  /** Writes the subscription; what is not named stays as it was. Resolves when it is acknowledged. */
  subscribe(id: string, change: Partial<Subscription>): Promise<void> {
    const before = this.subscriptions.get(id)
    const subscription: Subscription = {
      v: 1,
      id,
      tenant: 'default',
      url: `https://${id}.test/`,
      types: ['*'],
      ordering: 'key',
      status: 'active',
      secrets: [{ ref: 'env:X' }],
      createdAtMs: startMs,
      updatedAtMs: startMs,
      ...before,
      ...change,
    }
    this.subscriptions.set(id, subscription)
    return this.#tell(id, Buffer.from(JSON.stringify(subscription)))
  }

  setStatus(id: string, status: SubscriptionStatus): Promise<void> {
    return this.subscriptions.has(id) ? this.subscribe(id, { status }) : Promise.resolve()
  }

  unsubscribe(id: string): Promise<void> {
    this.subscriptions.delete(id)
    return this.#tell(id, null)
  }

  #told: Promise<unknown> = Promise.resolve()

  /** One after the other: a later state must not come before an earlier one that was repeated. */
  #tell(id: string, value: Buffer | null): Promise<void> {
    const record = { topic: 'subscriptions', partition: 0, key: id, value, headers: headerMap() }
    const writes = this.writes.get(id) ?? { begun: 0, done: 0 }
    this.writes.set(id, writes)
    const now = this.subscriptions.get(id)
    writes.begun++
    const told = this.#told.then(async () => {
      await this.append(record)
      // As `SubscriptionStore.write` does before it says so.
      await new Promise<void>((resolve) => this.clock.after(settledMs, resolve))
      writes.done++
      if (now === undefined) this.acknowledged.delete(id)
      else this.acknowledged.set(id, now)
    })
    this.#told = told
    return told
  }

  /** Appends until it is acknowledged; returns the offset. */
  async append(record: OutRecord): Promise<number> {
    for (;;) {
      try {
        const [appended] = await this.#operator.send([record])
        return appended?.firstOffset ?? -1
      } catch {
        await new Promise<void>((resolve) => this.clock.after(50, resolve))
      }
    }
  }

  #gone(id: string): void {
    this.disabled.add(id)
    this.onGone(id)
  }

  #observer(worker: string, incarnation: number): Observer {
    const { onLog } = this.#options
    return {
      log: (level, name, fields) => {
        onLog?.(this.clock.mono(), worker, level, name, fields ?? {})
        if (name !== 'control.applied' && name !== 'control.ended') return
        const { target, order } = fields as { target: string; order?: string }
        this.onApplied(target, order ?? 'none', worker, incarnation)
      },
      count() {},
      time() {},
    }
  }

  /** How far the routers have committed a partition of the events topic. */
  routed(partition: number): number {
    return this.broker.group('routers').committed({ topic: 'events', partition }).offset ?? 0
  }

  /** Everything routed, committed, and no line left: cheap enough to ask often. */
  drained(): boolean {
    const { broker } = this
    if (broker.processes().some((process) => process.stalled)) return false
    if (Object.values(this.gauges()).some((value) => value !== 0)) return false
    const behind = (group: string, topic: string) =>
      broker
        .logs(topic)
        .some((log) => log.end > log.start && (broker.group(group).committed(log).offset ?? 0) < log.end)
    if (behind('routers', 'events')) return false
    if ([topics.deliveries, ...topics.tiers].some((topic) => behind('deliverers', topic))) return false
    return this.#linesOpen() === 0
  }

  /** By partition and key: what `lane-state` says of each line now. */
  readonly #lines = new Map<string, Buffer>()
  readonly #linesRead = new Map<number, number>()

  /** Lines that are not simply open. */
  standingLines(): LineState[] {
    this.#readLines()
    return [...this.#lines.values()].map((value) => JSON.parse(value.toString()) as LineState)
  }

  #linesOpen(): number {
    return this.#readLines() ? this.#lines.size : 1
  }

  /** False: something is not decided yet. */
  #readLines(): boolean {
    for (const log of this.broker.logs('lane-state')) {
      if (log.stableEnd < log.end) return false
      for (let i = this.#linesRead.get(log.partition) ?? 0; i < log.history.length; i++) {
        const { record, txn } = log.history[i] as (typeof log.history)[number]
        const key = record?.key?.toString()
        if (key === undefined || !key.startsWith('line:') || txn?.state === 'aborted') continue
        if (record?.value == null) this.#lines.delete(`${log.partition} ${key}`)
        else this.#lines.set(`${log.partition} ${key}`, record.value)
      }
      this.#linesRead.set(log.partition, log.history.length)
    }
    return true
  }

  gauges(): Record<string, number> {
    const gauges: Record<string, number> = {}
    for (const { id, pipeline } of this.workers) {
      if (pipeline === null) continue
      gauges[`${id} inFlight`] = pipeline.executor.inFlight
      gauges[`${id} ready`] = pipeline.executor.ready
      gauges[`${id} bytes`] = pipeline.budget.bytes
    }
    return gauges
  }
}

/** Operators and producers have no faults of their own: what is produced is known exactly. */
const quietProcess = {
  crash: 0,
  callFails: 0,
  sendStored: 0,
  sendPartly: 0,
  sendLate: 0,
  gap: 0,
}
