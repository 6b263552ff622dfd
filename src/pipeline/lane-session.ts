import { messageOf } from '../core/error.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { GroupConsumer, LogReader, TransactionalProducer } from '../ports.ts'
import { Lane } from './lane.ts'
import { type CommitLimits, LaneCommitter } from './lane-committer.ts'
import { type FlowLimits, LaneFlow, type MemoryBudget } from './lane-flow.ts'
import type { LaneStart, LaneWorld } from './lane-world.ts'
import { obeyAll } from './line-wakes.ts'
import { bypassedOf, parkedOf, Sweep } from './sweep.ts'

export interface SessionDeps {
  readonly consumer: GroupConsumer
  readonly group: string
  readonly world: LaneWorld
  readonly flowLimits: FlowLimits
  readonly budget: MemoryBudget
  readonly commit: CommitLimits
  /** For `parked`: its long polls must not stand in front of other reads. */
  readonly sweepReader: LogReader
  /** For `deliveries`, what was passed by. */
  readonly bypassReader: LogReader
}

/** A lane from its gain to its loss: what feeds it, ticks for it, commits for it and reads `parked` for it. */
export class LaneSession {
  readonly lane: Lane
  readonly #deps: SessionDeps
  readonly #topics: readonly string[]
  readonly #producer: TransactionalProducer
  readonly #committer: LaneCommitter
  readonly #sweep: Sweep
  readonly #bypassSweep: Sweep
  #tickTimer: { atMs: number; cancel: () => void } | null = null
  #idleWaiters: (() => void)[] = []
  #closed = false

  /** `failed`: a commit failed or is of unknown outcome; `succeeded`: one is done. */
  constructor(
    deps: SessionDeps,
    topics: readonly string[],
    producer: TransactionalProducer,
    start: LaneStart,
    commits: { readonly failed: () => void; readonly succeeded: () => void },
  ) {
    const { world, consumer } = deps
    this.#deps = deps
    this.#topics = topics
    this.#producer = producer
    const flow = new LaneFlow(topics.length, deps.flowLimits, deps.budget, {
      pause: (index) => consumer.pause([this.#at(index, start.partition)]),
      resume: (index, seek) => this.#resume(index, seek),
    })
    this.lane = new Lane(world, start, flow, () => this.#touched())
    this.#committer = new LaneCommitter(world, this.lane, producer, {
      group: deps.group,
      limits: deps.commit,
      ...commits,
    })
    this.#sweep = new Sweep(world, this.lane.partition, deps.sweepReader, parkedOf(world, this.lane))
    this.#bypassSweep = new Sweep(world, this.lane.partition, deps.bypassReader, bypassedOf(world, this.lane))
  }

  /** Starts reading where the lane stands: after the gain, and after a rejoin in which it stayed ours. */
  read(): void {
    for (const [index] of this.#topics.entries()) {
      const at = this.#at(index, this.lane.partition)
      // A paused one too: it goes on from here when it is resumed.
      this.#deps.consumer.seek(at, this.lane.position(index))
      if (this.lane.flow.runs(index)) this.#deps.consumer.resume([at])
    }
    const { world } = this.#deps
    const exists = (id: string) => world.subscription(id) !== undefined
    this.lane.wake((lines) => obeyAll(lines, world.orders, world.clock.now(), exists))
    this.#touched()
    this.#sweep.wake()
  }

  onBatch(batch: FetchedBatch): void {
    const index = this.#topics.indexOf(batch.topic)
    if (this.#closed || index < 0) return
    this.lane.onBatch(index, batch)
    if (index > 0) this.tick()
  }

  /** Promotes what is due, and sees to being called again in time. */
  tick(): void {
    if (this.#closed) return
    const atMs = this.lane.tick()
    if (atMs === null || (this.#tickTimer !== null && this.#tickTimer.atMs <= atMs)) return
    this.#tickTimer?.cancel()
    const { clock } = this.#deps.world
    // Epoch time can step; a bounded wait notices.
    const cancel = clock.after(Math.min(Math.max(0, atMs - clock.now()), 1_000), () => {
      this.#tickTimer = null
      this.tick()
    })
    this.#tickTimer = { atMs, cancel }
  }

  /** Everything open has ended. Resolves at once when nothing is. */
  async idle(): Promise<void> {
    if (this.#closed || this.lane.inFlight === 0) return
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  flush(): Promise<void> {
    return this.#committer.flush()
  }

  get lastCommitMs(): number | null {
    return this.#committer.lastMs
  }

  /** What is open is dropped when it comes back. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#committer.stop()
    this.#sweep.stop()
    this.#bypassSweep.stop()
    this.#tickTimer?.cancel()
    this.lane.close()
    for (const resolve of this.#idleWaiters.splice(0)) resolve()
    await closeProducer(this.#producer, this.#deps.world)
  }

  #touched(): void {
    if (this.#closed) return
    if (this.lane.inFlight === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve()
    if (this.lane.lineCount > 0) this.#sweep.wake()
    if (this.lane.bypass.size > 0) this.#bypassSweep.wake()
    this.#committer.touched()
  }

  #resume(index: number, seek: boolean): void {
    const at = this.#at(index, this.lane.partition)
    if (seek) this.#deps.consumer.seek(at, this.lane.position(index))
    this.#deps.consumer.resume([at])
  }

  #at(index: number, partition: number): { topic: string; partition: number } {
    return { topic: this.#topics[index] as string, partition }
  }
}

export async function closeProducer(producer: TransactionalProducer, world: LaneWorld): Promise<void> {
  try {
    await producer.close()
  } catch (error) {
    world.observer.log('debug', 'producer.close_failed', { error: messageOf(error) })
  }
}
