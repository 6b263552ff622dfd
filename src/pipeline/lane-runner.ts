import { HooktideError, messageOf } from '../core/error.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { GroupConsumer, Kafka, LogReader, TransactionalProducer } from '../ports.ts'
import { Lane } from './lane.ts'
import { type FlowLimits, LaneFlow, type MemoryBudget } from './lane-flow.ts'
import { type LoadInput, loadLane } from './lane-load.ts'
import { sourceTopics } from './lane-topics.ts'
import type { LaneWorld } from './lane-world.ts'

export interface CommitLimits {
  /** A transaction when this many records are settled, or so long after the first of them. */
  readonly records: number
  readonly everyMs: number
  /** So long after the first move: it delays what is retried. */
  readonly movesEveryMs: number
}

export interface LaneRunnerDeps {
  readonly kafka: Kafka
  readonly consumer: GroupConsumer
  readonly group: string
  /** Lane p's transactional id is this and p: one per lane, whoever owns it, is what fences (KIP-98, before KIP-447). */
  readonly transactionalIdPrefix: string
  readonly world: LaneWorld
  readonly maxSpan: number
  readonly flowLimits: FlowLimits
  readonly budget: MemoryBudget
  readonly commit: CommitLimits
  /** For `parked`: its long polls must not stand in front of other reads. */
  readonly sweepReader: LogReader
  readonly stateReader: LogReader
  readonly decodeLaneState: LoadInput['decodeLaneState']
}

export type LaneStatus = 'gaining' | 'running' | 'lost'

/** Owns one lane as long as the group gives it to us: gains it, feeds it, commits for it, regains it after a failure. */
export class LaneRunner {
  readonly partition: number
  readonly #deps: LaneRunnerDeps
  readonly #topics: readonly string[]
  #epoch = 0
  #status: LaneStatus = 'lost'
  #lane: Lane | null = null
  #producer: TransactionalProducer | null = null
  #failures = 0
  #committing: Promise<void> | null = null
  #dirtySince: number | null = null
  #movesSince: number | null = null
  #commitTimer: { atMs: number; cancel: () => void } | null = null
  #tickTimer: { atMs: number; cancel: () => void } | null = null
  #sweepTimer: (() => void) | null = null
  #sweeping = false
  #idleWaiters: (() => void)[] = []
  /** Over all epochs that have ended. */
  readonly totals = { promoted: new Map<string, number>() }

  constructor(partition: number, deps: LaneRunnerDeps) {
    this.partition = partition
    this.#deps = deps
    this.#topics = sourceTopics(deps.world.topics)
  }

  get status(): LaneStatus {
    return this.#status
  }

  get lane(): Lane | null {
    return this.#lane
  }

  get epoch(): number {
    return this.#epoch
  }

  get inFlight(): number {
    return this.#lane?.inFlight ?? 0
  }

  /** The group gave us the lane: pause → fence → offsets and bitmap → lane-state → seek → run. Goes on until it succeeds or is lost. */
  gain(): void {
    const epoch = ++this.#epoch
    this.#status = 'gaining'
    void this.#gain(epoch)
  }

  async #gain(epoch: number): Promise<void> {
    const { world, kafka, transactionalIdPrefix } = this.#deps
    while (this.#epoch === epoch) {
      const producer = kafka.transactional(`${transactionalIdPrefix}${this.partition}`)
      try {
        await producer.fence()
        if (this.#epoch !== epoch) return void (await producer.close())
        const contents = await loadLane({
          partition: this.partition,
          group: this.#deps.group,
          topics: world.topics,
          maxSpan: this.#deps.maxSpan,
          offsets: kafka.offsets,
          reader: this.#deps.stateReader,
          observer: world.observer,
          decodeLaneState: this.#deps.decodeLaneState,
        })
        if (this.#epoch !== epoch) return void (await producer.close())
        this.#run(epoch, producer, contents)
        return
      } catch (error) {
        this.#failures++
        world.observer.log('warn', 'lane.gain_failed', {
          lane: this.partition,
          error: messageOf(error),
          code: codeOf(error),
          failures: this.#failures,
        })
        await producer
          .close()
          .catch((e: unknown) => world.observer.log('debug', 'producer.close_failed', { error: messageOf(e) }))
        await this.#pauseAfterFailure()
      }
    }
  }

  #run(epoch: number, producer: TransactionalProducer, contents: Awaited<ReturnType<typeof loadLane>>): void {
    const { world, consumer } = this.#deps
    this.#producer = producer
    const flow = new LaneFlow(this.#topics.length, this.#deps.flowLimits, this.#deps.budget, {
      pause: (index) => consumer.pause([this.#at(index)]),
      resume: (index, seek) => {
        if (seek) consumer.seek(this.#at(index), this.#lane?.position(index) ?? 0)
        consumer.resume([this.#at(index)])
      },
    })
    const lane = new Lane(world, { partition: this.partition, epoch, ...contents }, flow, () => this.#touched())
    this.#lane = lane
    this.#status = 'running'
    this.#failures = 0
    for (const [index] of this.#topics.entries()) consumer.seek(this.#at(index), lane.position(index))
    consumer.resume(this.#topics.map((_, index) => this.#at(index)))
    world.observer.log('info', 'lane.gained', {
      lane: this.partition,
      epoch,
      offset: lane.position(0),
      lines: contents.lines.length,
    })
    lane.obeyOrders()
    this.#touched()
    this.#wakeSweep()
  }

  /** An operator's order for this target was given, changed or taken back. */
  ordered(kind: string, target: string): void {
    this.#lane?.ordered(kind, target)
    if (kind === 'tier') this.#tick()
  }

  /** After a rejoin in which the lane stayed ours: everything is paused, positions are the committed ones. */
  keep(): void {
    const lane = this.#lane
    if (lane === null) return
    const { consumer } = this.#deps
    for (const [index] of this.#topics.entries()) {
      consumer.seek(this.#at(index), lane.position(index))
      if (lane.flow.runs(index)) consumer.resume([this.#at(index)])
    }
    this.#touched()
  }

  onBatch(batch: FetchedBatch): void {
    const index = this.#topics.indexOf(batch.topic)
    const lane = this.#lane
    if (lane === null || index < 0) return
    lane.onBatch(index, batch)
    if (index > 0) this.#tick()
  }

  /** Lost to another owner, or the process ends: what is open is dropped when it comes back. */
  async lose(): Promise<void> {
    this.#epoch++
    this.#status = 'lost'
    await this.#shut()
  }

  /** Everything open has ended. Resolves at once when nothing is. */
  async idle(): Promise<void> {
    if (this.inFlight === 0) return
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Commits what is settled now, waiting for a transaction under way. */
  async flush(): Promise<void> {
    while (this.#committing !== null) await this.#committing
    if (this.#lane?.ledger.dirty) await this.#commit()
  }

  // ---- committing ----------------------------------------------------------------------------------------------

  /** Something changed in the lane: see whether a commit, a tick or a look into `parked` is due. Cheap. */
  #touched(): void {
    const lane = this.#lane
    if (lane === null) return
    if (lane.inFlight === 0 && this.#idleWaiters.length > 0)
      for (const resolve of this.#idleWaiters.splice(0)) resolve()
    if (lane.lineCount > 0) this.#wakeSweep()
    if (this.#committing !== null || !lane.ledger.dirty) return
    const { records, everyMs, movesEveryMs } = this.#deps.commit
    const now = this.#deps.world.clock.mono()
    this.#dirtySince ??= now
    if (lane.ledger.pendingMoves > 0) this.#movesSince ??= now
    const atMs =
      lane.ledger.pendingSettled >= records
        ? now
        : Math.min(this.#dirtySince + everyMs, (this.#movesSince ?? Number.POSITIVE_INFINITY) + movesEveryMs)
    if (atMs <= now) {
      void this.#commit()
      return
    }
    if (this.#commitTimer !== null && this.#commitTimer.atMs <= atMs) return
    this.#commitTimer?.cancel()
    const cancel = this.#deps.world.clock.after(atMs - now, () => {
      this.#commitTimer = null
      void this.#commit()
    })
    this.#commitTimer = { atMs, cancel }
  }

  #commit(): Promise<void> {
    if (this.#committing !== null) return this.#committing
    const running = this.#commitOnce().finally(() => {
      this.#committing = null
      this.#touched()
    })
    this.#committing = running
    return running
  }

  async #commitOnce(): Promise<void> {
    const { world, group } = this.#deps
    const lane = this.#lane
    const producer = this.#producer
    const snapshot = lane?.ledger.snapshot() ?? null
    this.#commitTimer?.cancel()
    this.#commitTimer = null
    this.#dirtySince = null
    this.#movesSince = null
    if (lane === null || producer === null || snapshot === null) return
    const epoch = this.#epoch
    const sentMs = world.clock.now()
    const started = world.clock.mono()
    try {
      const appended = await producer.transact({ records: snapshot.records, group, offsets: snapshot.offsets })
      world.observer.time('commit', world.clock.mono() - started)
      const receivedMs = world.clock.now()
      for (const part of appended)
        if (part.appendTimeMs !== null) world.clockOffset.sample(sentMs, receivedMs, part.appendTimeMs)
      if (this.#epoch === epoch) lane.committed(snapshot, appended)
    } catch (error) {
      if (this.#epoch !== epoch) return
      world.observer.log('error', 'lane.commit_failed', {
        lane: this.partition,
        epoch,
        error: messageOf(error),
        code: codeOf(error),
        records: snapshot.records.length,
      })
      world.observer.count('commit_failed', 1, { code: codeOf(error) })
      await this.#regain()
    }
  }

  /** A failed or ambiguous commit: memory is rebuilt from what Kafka holds, as after a loss. */
  async #regain(): Promise<void> {
    this.#epoch++
    const epoch = this.#epoch
    this.#status = 'gaining'
    this.#failures++
    this.#deps.consumer.pause(this.#topics.map((_, index) => this.#at(index)))
    await this.#shut()
    await this.#pauseAfterFailure()
    if (this.#epoch === epoch && this.#status === 'gaining') await this.#gain(epoch)
  }

  async #shut(): Promise<void> {
    const lane = this.#lane
    const producer = this.#producer
    this.#lane = null
    this.#producer = null
    this.#dirtySince = null
    this.#movesSince = null
    for (const timer of [this.#commitTimer, this.#tickTimer]) timer?.cancel()
    this.#commitTimer = null
    this.#tickTimer = null
    this.#sweepTimer?.()
    this.#sweepTimer = null
    for (const resolve of this.#idleWaiters.splice(0)) resolve()
    if (lane !== null) {
      lane.close()
      this.#count(lane)
    }
    await producer
      ?.close()
      .catch((e: unknown) => this.#deps.world.observer.log('debug', 'producer.close_failed', { error: messageOf(e) }))
  }

  #count(lane: Lane): void {
    for (const [tier, n] of lane.tiers.promoted)
      this.totals.promoted.set(tier, (this.totals.promoted.get(tier) ?? 0) + n)
  }

  #pauseAfterFailure(): Promise<void> {
    const { clock } = this.#deps.world
    const ms = Math.min(5_000, 100 * 2 ** Math.min(this.#failures, 6)) * (0.5 + clock.random() / 2)
    return new Promise((resolve) => clock.after(ms, resolve))
  }

  // ---- time and parked -----------------------------------------------------------------------------------------

  #tick(): void {
    const lane = this.#lane
    if (lane === null) return
    const atMs = lane.tick()
    if (atMs === null) return
    if (this.#tickTimer !== null && this.#tickTimer.atMs <= atMs) return
    this.#tickTimer?.cancel()
    const { clock } = this.#deps.world
    // Epoch time can step; a bounded wait notices.
    const waitMs = Math.min(Math.max(0, atMs - clock.now()), 1_000)
    const cancel = clock.after(waitMs, () => {
      this.#tickTimer = null
      this.#tick()
    })
    this.#tickTimer = { atMs, cancel }
  }

  #wakeSweep(): void {
    if (this.#sweeping || this.#sweepTimer !== null || this.#lane === null) return
    this.#sweepTimer = this.#deps.world.clock.after(sweepPauseMs, () => {
      this.#sweepTimer = null
      const lane = this.#lane
      if (lane === null || this.#sweeping || lane.parkedWanted() === null) return
      this.#sweeping = true
      void this.#sweep(lane).finally(() => {
        this.#sweeping = false
        if (this.#lane === lane && lane.lineCount > 0) this.#wakeSweep()
      })
    })
  }

  async #sweep(lane: Lane): Promise<void> {
    const { sweepReader, world } = this.#deps
    try {
      for (let from = lane.parkedWanted(); from !== null && this.#lane === lane; from = lane.parkedWanted()) {
        const batch = await sweepReader.fetch({
          topic: world.topics.parked,
          partition: this.partition,
          from,
          maxBytes: sweepBytes,
          maxWaitMs: 100,
        })
        if (this.#lane !== lane) return
        lane.onParked(from, batch)
      }
    } catch (error) {
      if (this.#lane !== lane) return
      world.observer.log('warn', 'parked.read_failed', {
        lane: this.partition,
        error: messageOf(error),
        code: codeOf(error),
      })
      await new Promise<void>((resolve) => world.clock.after(500, resolve))
      this.#wakeSweepLater()
    }
  }

  #wakeSweepLater(): void {
    this.#deps.world.clock.after(sweepPauseMs, () => this.#wakeSweep())
  }

  #at(index: number): { topic: string; partition: number } {
    return { topic: this.#topics[index] as string, partition: this.partition }
  }
}

const sweepPauseMs = 5
const sweepBytes = 1024 * 1024

function codeOf(error: unknown): string {
  return error instanceof HooktideError ? error.code : 'internal'
}
