import type { GroupConsumerOptions, Kafka } from '../../src/ports.ts'
import type { FakeClock } from './fake-clock.ts'
import { FaultDice, type Faults, noFaults } from './faults.ts'
import { Group } from './group.ts'
import { defaultLatency, type Latency, Link, latencyOf } from './link.ts'
import { MemoryConsumer } from './memory-consumer.ts'
import { type MemoryCore, portError } from './memory-core.ts'
import { MemoryProducer } from './memory-producer.ts'
import { MemoryOffsets, MemoryReader } from './memory-reader.ts'
import { MemoryTransactional } from './memory-transactional.ts'
import { type Entry, PartitionLog } from './partition-log.ts'
import { ProtocolError } from './protocol.ts'
import { type Random, randomStream } from './random.ts'
import { SimProcess } from './sim-process.ts'
import { Transactions } from './transactions.ts'

export interface TopicOptions {
  readonly partitions: number
  /** LogAppendTime, as the tiers have it. */
  readonly appendTime?: boolean
  readonly compacted?: boolean
}

export interface MemoryBrokerOptions {
  readonly seed?: number
  readonly faults?: Partial<Faults>
  readonly latency?: Partial<Latency>
  /** Of a transaction's markers, after its decision; default as `latency`. */
  readonly markerLatency?: Partial<Latency>
  readonly maxMessageBytes?: number
  readonly maxFetchRecords?: number
  readonly sessionTimeoutMs?: number
  readonly rebalanceTimeoutMs?: number
  readonly heartbeatMs?: number
  readonly initialRebalanceDelayMs?: number
  readonly transactionTimeoutMs?: number
  readonly requestTimeoutMs?: number
  /** An empty long poll waits at least so long: it saves a simulation most of its timers and changes nothing else. */
  readonly longPollMs?: number
  /** What the broker's wall clock shows above the simulation's. */
  readonly clockOffsetMs?: number
}

/** Records that retention took while a group had not come so far yet. */
export interface Loss {
  readonly topic: string
  readonly partition: number
  readonly from: number
  readonly to: number
}

export interface FaultEntry {
  readonly kind: string
  /** null: everybody's. */
  readonly process: string | null
  readonly atMs: number
  readonly untilMs: number
}

/** Kafka in memory on simulated time; see `faults.ts` for what it can do to its clients. */
export class MemoryBroker implements MemoryCore {
  readonly clock: FakeClock
  readonly dice: FaultDice
  readonly latencyRandom: Random
  readonly latency: Latency
  readonly transactions: Transactions
  readonly settings
  readonly losses: Loss[] = []
  /** Everything that went wrong on purpose, in order. */
  readonly faultLog: FaultEntry[] = []
  clockOffsetMs: number
  readonly #options: MemoryBrokerOptions
  readonly #seed: number
  readonly #topics = new Map<string, { options: TopicOptions; logs: PartitionLog[] }>()
  readonly #groups = new Map<string, Group>()
  readonly #processes = new Map<string, SimProcess>()
  readonly #crashListeners: ((processId: string) => void)[] = []
  #coordinatorlessUntilMs = 0

  constructor(clock: FakeClock, options: MemoryBrokerOptions = {}) {
    this.clock = clock
    this.#options = options
    this.#seed = options.seed ?? 1
    this.dice = new FaultDice(this.#seed, { ...noFaults, ...options.faults }, (kind, process) =>
      this.note(kind, process),
    )
    this.latencyRandom = randomStream(this.#seed, 'latency')
    this.latency = { ...defaultLatency, ...options.latency }
    this.clockOffsetMs = options.clockOffsetMs ?? 0
    this.settings = {
      maxMessageBytes: options.maxMessageBytes ?? 1_048_588,
      heartbeatMs: options.heartbeatMs ?? 1_000,
      sessionTimeoutMs: options.sessionTimeoutMs ?? 10_000,
      maxFetchRecords: options.maxFetchRecords ?? 100,
      requestTimeoutMs: options.requestTimeoutMs ?? 5_000,
      longPollMs: options.longPollMs ?? 0,
    }
    const markers = randomStream(this.#seed, 'markers')
    this.transactions = new Transactions(clock, {
      timeoutMs: options.transactionTimeoutMs ?? 30_000,
      markerMs: () => latencyOf(markers, { ...this.latency, ...options.markerLatency }),
    })
  }

  createTopic(topic: string, options: TopicOptions): void {
    if (this.#topics.has(topic)) throw new Error(`topic ${topic} exists`)
    const logs = Array.from({ length: options.partitions }, (_, partition) => new PartitionLog(topic, partition))
    this.#topics.set(topic, { options, logs })
  }

  /** As an operator who recreates it: offsets start at 0 again, committed positions stay. */
  recreateTopic(topic: string): void {
    const { options } = this.#topic(topic)
    this.#topics.delete(topic)
    this.createTopic(topic, options)
  }

  /** The living process of that id, made when there is none: its clock is what its code must be given. */
  process(processId: string): SimProcess {
    const known = this.#processes.get(processId)
    if (known?.alive) return known
    const started = new SimProcess(processId, (known?.incarnation ?? 0) + 1, this.clock, this.#seed)
    this.#processes.set(processId, started)
    return started
  }

  /** Clients for one process; all of them end with it. */
  client(processId: string, options: { faults?: Partial<Faults> } = {}): Kafka & { readonly process: SimProcess } {
    if (options.faults !== undefined) this.dice.setFor(processId, options.faults)
    const process = this.process(processId)
    const link = new Link(process, this)
    const closers: (() => Promise<void>)[] = []
    const keep = <T>(part: T, close: (part: T) => Promise<void>): T => {
      closers.push(() => close(part))
      return part
    }
    return {
      process,
      consumer: (o: GroupConsumerOptions) => keep(new MemoryConsumer(this, link, o), (c) => c.stop()),
      producer: () => keep(new MemoryProducer(this, link), (p) => p.close()),
      transactional: (id: string) => keep(new MemoryTransactional(this, link, id), (p) => p.close()),
      reader: () => keep(new MemoryReader(this, link), (r) => r.close()),
      offsets: new MemoryOffsets(this, link),
      partitions: (topics: readonly string[]) => this.#partitions(link, topics),
      close: async () => {
        for (const close of closers.splice(0)) await close()
      },
    }
  }

  /** kill −9: nothing of the process goes on, its membership and its open transactions linger until they time out. */
  crash(processId: string): void {
    const process = this.#processes.get(processId)
    if (!process?.alive) return
    this.note('crash', processId)
    process.kill()
    for (const listener of this.#crashListeners) listener(processId)
  }

  onCrash(listener: (processId: string) => void): void {
    this.#crashListeners.push(listener)
  }

  /** SIGSTOP for a while. Longer than the session time-out it makes a zombie owner. */
  stall(processId: string, ms: number): void {
    const process = this.#processes.get(processId)
    if (!process?.alive || process.stalled) return
    this.note('stall', processId, ms)
    process.stall(ms)
  }

  /** The coordinator forgets the process's memberships; it learns it at its next heartbeat or commit. */
  expire(processId: string): void {
    this.note('expire', processId)
    for (const group of this.#groups.values()) group.expire(processId)
  }

  moveLeader(topic: string, partition: number, ms: number): void {
    const log = this.log(topic, partition)
    this.note('leader', null, ms)
    log.leaderlessUntilMs = Math.max(log.leaderlessUntilMs, this.clock.mono() + ms)
  }

  moveCoordinator(ms: number): void {
    this.note('coordinator', null, ms)
    this.#coordinatorlessUntilMs = Math.max(this.#coordinatorlessUntilMs, this.clock.mono() + ms)
  }

  /** Puts a fault on record, also one that somebody else causes (an orderly restart, a lost endpoint). */
  note(kind: string, process: string | null, forMs = 0): void {
    const atMs = this.clock.mono()
    this.faultLog.push({ kind, process, atMs, untilMs: atMs + forMs })
  }

  /** Retention: the log starts at `offset` now. */
  truncate(topic: string, partition: number, offset: number): void {
    const log = this.log(topic, partition)
    const from = log.start
    log.truncate(offset)
    if (log.start > from) this.note('retention', null)
    if (log.start > from) this.losses.push({ topic, partition, from, to: log.start })
  }

  compact(topic: string, options: { tombstones?: 'keep' | 'remove' } = {}): void {
    for (const log of this.logs(topic)) log.compact(options)
  }

  damage(topic: string, partition: number, offset: number, reason: string): void {
    const entry = this.log(topic, partition).history.find((e) => e.offset === offset)
    if (entry !== undefined) entry.undecodable = reason
  }

  /** Everything a read-committed reader could ever have seen of a topic, partition by partition, gone or not. */
  committed(topic: string): (Entry & { partition: number })[] {
    return this.logs(topic).flatMap((log) => log.committedHistory().map((e) => ({ ...e, partition: log.partition })))
  }

  hasTopic(topic: string): boolean {
    return this.#topics.has(topic)
  }

  topics(): readonly string[] {
    return [...this.#topics.keys()]
  }

  topicOptions(topic: string): TopicOptions {
    return this.#topic(topic).options
  }

  groups(): readonly string[] {
    return [...this.#groups.keys()]
  }

  processes(): readonly SimProcess[] {
    return [...this.#processes.values()].filter((p) => p.alive)
  }

  logs(topic: string): readonly PartitionLog[] {
    return this.#topic(topic).logs
  }

  log(topic: string, partition: number): PartitionLog {
    const log = this.#topic(topic).logs[partition]
    if (log === undefined) throw new ProtocolError('unknown-topic', `topic ${topic} has no partition ${partition}`)
    return log
  }

  group(name: string): Group {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = new Group(this.clock, {
        sessionTimeoutMs: this.settings.sessionTimeoutMs,
        rebalanceTimeoutMs: this.#options.rebalanceTimeoutMs ?? 30_000,
        initialDelayMs: this.#options.initialRebalanceDelayMs ?? 100,
        partitionCount: (topic) => this.#topics.get(topic)?.logs.length ?? null,
      })
      this.#groups.set(name, group)
    }
    return group
  }

  requireLeader(log: PartitionLog): void {
    if (this.clock.mono() < log.leaderlessUntilMs) throw new ProtocolError('unavailable', `no leader for ${log.topic}`)
  }

  requireCoordinator(): void {
    if (this.clock.mono() < this.#coordinatorlessUntilMs) throw new ProtocolError('unavailable', 'no coordinator')
  }

  stamp(topic: string, process: SimProcess): { timestampMs: number; appendTimeMs: number | null } {
    if (this.#topic(topic).options.appendTime !== true) return { timestampMs: process.now(), appendTimeMs: null }
    const appendTimeMs = this.clock.now() + this.clockOffsetMs
    return { timestampMs: appendTimeMs, appendTimeMs }
  }

  #topic(topic: string): { options: TopicOptions; logs: PartitionLog[] } {
    const found = this.#topics.get(topic)
    if (found === undefined) throw new ProtocolError('unknown-topic', `topic ${topic} does not exist`)
    return found
  }

  async #partitions(link: Link, topics: readonly string[]): Promise<ReadonlyMap<string, number>> {
    try {
      return await link.call(() => {
        const known = topics.flatMap((t): [string, number][] => (this.hasTopic(t) ? [[t, this.logs(t).length]] : []))
        return new Map(known)
      })
    } catch (error) {
      throw portError(error, 'broker.unavailable')
    }
  }
}
