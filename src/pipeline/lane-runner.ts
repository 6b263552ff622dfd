import { codeOf, HooktideError, messageOf } from '../core/error.ts'
import type { SpanLimits } from '../core/offset-tracker.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { Kafka, LogReader, TransactionalProducer } from '../ports.ts'
import type { Lane } from './lane.ts'
import { type LaneContents, type LoadInput, loadLane } from './lane-load.ts'
import { closeProducer, LaneSession, type SessionDeps } from './lane-session.ts'
import { sourceTopics } from './lane-topics.ts'
import { obeyOrder } from './line-wakes.ts'

export interface LaneRunnerDeps extends SessionDeps {
  readonly kafka: Kafka
  /** Lane p's transactional id is this and p: one per lane, whoever owns it, is what fences (KIP-98, before KIP-447). */
  readonly transactionalIdPrefix: string
  readonly span: SpanLimits
  readonly stateReader: LogReader
  readonly decodeLaneState: LoadInput['decodeLaneState']
}

export type LaneStatus = 'gaining' | 'running' | 'lost'

/** Owns one lane as long as the group gives it to us: gains it, and gains it anew after a failure. */
export class LaneRunner {
  readonly partition: number
  readonly #deps: LaneRunnerDeps
  readonly #topics: readonly string[]
  #epoch = 0
  #status: LaneStatus = 'lost'
  #session: LaneSession | null = null
  /** The producer of a gain under way, and its fencing. */
  #gaining: { readonly producer: TransactionalProducer; readonly fenced: Promise<void> } | null = null
  /** A rejoin is under way: nothing may be fenced that may be another's when it is over. */
  #held = false
  #failures = 0
  /** Mono ms of the last failure: before fencing again, our membership must have been confirmed since. */
  #failedAtMs: number | null = null
  /** Promotions per tier of the sessions that have ended. */
  readonly promotedBefore = new Map<string, number>()

  constructor(partition: number, deps: LaneRunnerDeps) {
    this.partition = partition
    this.#deps = deps
    this.#topics = sourceTopics(deps.world.topics)
  }

  get status(): LaneStatus {
    return this.#status
  }

  get lane(): Lane | null {
    return this.#session?.lane ?? null
  }

  /** Duration of the last commit of this ownership, ms; null: none yet. */
  get lastCommitMs(): number | null {
    return this.#session?.lastCommitMs ?? null
  }

  get inFlight(): number {
    return this.#session?.lane.inFlight ?? 0
  }

  /** The group gave us the lane: pause → fence → offsets and bitmap → lane-state → seek → run. Goes on until it succeeds or is lost. */
  gain(): void {
    this.#status = 'gaining'
    void this.#gain(++this.#epoch)
  }

  /** An operator's order for this target was given, changed or taken back. */
  ordered(kind: string, target: string): void {
    const { orders, clock } = this.#deps.world
    this.lane?.wake((lines) => obeyOrder(lines, orders, kind, target, clock.now()))
    if (kind === 'tier') this.#session?.tick()
  }

  /** After a rejoin in which the lane stayed ours: everything is paused, positions are the committed ones. */
  keep(): void {
    this.#held = false
    this.#session?.read()
  }

  /**
   * Before a rejoin: fences no more, until `keep`. Resolves when a fence on its way is answered: the coordinator may take
   * its time over it, and one that it gets to after the lane's next owner fenced would fence that one.
   */
  async hold(): Promise<void> {
    this.#held = true
    await this.#gaining?.fenced
  }

  onBatch(batch: FetchedBatch): void {
    this.#session?.onBatch(batch)
  }

  /** Lost to another owner, or the process ends. */
  async lose(): Promise<void> {
    this.#epoch++
    this.#status = 'lost'
    // A fence that is still being repeated must not be.
    if (this.#gaining !== null) await closeProducer(this.#gaining.producer, this.#deps.world)
    await this.#shut()
  }

  /** Everything open has ended. */
  async idle(): Promise<void> {
    await this.#session?.idle()
  }

  /** Commits what is settled now, waiting for a transaction under way. */
  async flush(): Promise<void> {
    await this.#session?.flush()
  }

  async #gain(epoch: number): Promise<void> {
    const { world, kafka, transactionalIdPrefix } = this.#deps
    while (this.#epoch === epoch) {
      if (this.#held || !this.#confirmed()) {
        await this.#wait(200)
        continue
      }
      const producer = kafka.transactional(`${transactionalIdPrefix}${this.partition}`)
      try {
        const fencing = producer.fence()
        this.#gaining = { producer, fenced: fencing.catch(() => undefined) }
        await fencing
        const contents = await this.#load(epoch)
        if (contents !== null) return this.#run(epoch, producer, contents)
        await closeProducer(producer, world)
      } catch (error) {
        if (this.#epoch !== epoch) return closeProducer(producer, world)
        const fields = {
          lane: this.partition,
          error: messageOf(error),
          code: codeOf(error),
          failures: ++this.#failures,
        }
        this.#failedAtMs = world.clock.mono()
        world.observer.log('warn', 'lane.gain_failed', fields)
        await closeProducer(producer, world)
        await this.#backOff()
      } finally {
        if (this.#gaining?.producer === producer) this.#gaining = null
      }
    }
  }

  /** Null when the lane was lost meanwhile. */
  async #load(epoch: number): Promise<LaneContents | null> {
    if (this.#epoch !== epoch) return null
    const { world, kafka, group, span, stateReader, decodeLaneState } = this.#deps
    // Its subscriptions must not be taken for deleted because the table is behind.
    await world.freshen()
    if (this.#failures > 0) await this.#checkTopics()
    const contents = await loadLane({
      partition: this.partition,
      group,
      topics: world.topics,
      span,
      offsets: kafka.offsets,
      reader: stateReader,
      observer: world.observer,
      decodeLaneState,
    })
    return this.#epoch === epoch ? contents : null
  }

  /**
   * After a failure: is there anywhere to write to? Without, every record would be attempted anew with each new start and
   * none of it be kept.
   */
  async #checkTopics(): Promise<void> {
    const { kafka, world } = this.#deps
    const { tiers, parked, laneState, dead, attempts, rejected } = world.topics
    const wanted = [...tiers, parked, laneState, dead, attempts, rejected]
    const found = await kafka.partitions(wanted)
    const missing = wanted.filter((topic) => !found.has(topic))
    if (missing.length === 0) return
    throw new HooktideError('topic.missing', `nothing is delivered: ${missing.join(', ')} missing`, {
      remedy: 'Run `hooktide topics apply`.',
    })
  }

  #run(epoch: number, producer: TransactionalProducer, contents: LaneContents): void {
    const start = { partition: this.partition, epoch, ...contents }
    const session = new LaneSession(this.#deps, this.#topics, producer, start, {
      failed: () => void this.#regain(),
      succeeded: () => {
        this.#failures = 0
      },
    })
    this.#session = session
    this.#status = 'running'
    this.#failedAtMs = null
    this.#deps.world.observer.log('info', 'lane.gained', {
      lane: this.partition,
      epoch,
      offset: session.lane.position(0),
      lines: contents.lines.length,
    })
    session.read()
  }

  /** A failed or ambiguous commit: memory is rebuilt from what Kafka holds, as after a loss. */
  async #regain(): Promise<void> {
    const epoch = ++this.#epoch
    this.#status = 'gaining'
    this.#failures++
    this.#failedAtMs = this.#deps.world.clock.mono()
    this.#deps.consumer.pause(this.#topics.map((topic) => ({ topic, partition: this.partition })))
    await this.#shut()
    await this.#backOff()
    if (this.#epoch === epoch) await this.#gain(epoch)
  }

  async #shut(): Promise<void> {
    const session = this.#session
    this.#session = null
    if (session === null) return
    for (const [tier, n] of session.lane.tiers.promoted) {
      this.promotedBefore.set(tier, (this.promotedBefore.get(tier) ?? 0) + n)
    }
    await session.close()
  }

  /** Who was fenced may have lost the lane without knowing: fencing back would only hurt its owner. */
  #confirmed(): boolean {
    if (this.#failedAtMs === null) return true
    return this.#deps.consumer.leaseAgeMs() < this.#deps.world.clock.mono() - this.#failedAtMs
  }

  #backOff(): Promise<void> {
    const { clock } = this.#deps.world
    return this.#wait(Math.min(mostBackOffMs, 100 * 2 ** Math.min(this.#failures, 10)) * (0.5 + clock.random() / 2))
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#deps.world.clock.after(ms, resolve))
  }
}

/** A lane that fails again and again must not repeat its open deliveries all the time. */
const mostBackOffMs = 30_000
