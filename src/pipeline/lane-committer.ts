import { codeOf, messageOf } from '../core/error.ts'
import type { TransactionalProducer } from '../ports.ts'
import type { Lane } from './lane.ts'
import type { LaneWorld } from './lane-world.ts'

export interface CommitLimits {
  /** A transaction when this many records are settled, or so long after the first of them. */
  readonly records: number
  readonly everyMs: number
  /** So long after the first move: it delays what is retried. */
  readonly movesEveryMs: number
}

/**
 * Commits what a lane has settled: one synchronous snapshot, one transaction at a time. After a failure it is done: what
 * the transaction came to is only known when the lane has been gained anew.
 */
export class LaneCommitter {
  readonly #world: LaneWorld
  readonly #lane: Lane
  readonly #producer: TransactionalProducer
  readonly #group: string
  readonly #limits: CommitLimits
  readonly #failed: () => void
  readonly #succeeded: () => void
  #running: Promise<void> | null = null
  #dirtySince: number | null = null
  #movesSince: number | null = null
  #timer: { atMs: number; cancel: () => void } | null = null
  #stopped = false
  /** Duration of the last one that succeeded, ms; null: none yet. */
  lastMs: number | null = null

  constructor(
    world: LaneWorld,
    lane: Lane,
    producer: TransactionalProducer,
    options: {
      readonly group: string
      readonly limits: CommitLimits
      readonly failed: () => void
      readonly succeeded: () => void
    },
  ) {
    this.#world = world
    this.#lane = lane
    this.#producer = producer
    this.#group = options.group
    this.#limits = options.limits
    this.#failed = options.failed
    this.#succeeded = options.succeeded
  }

  /** Something may have been settled: see whether a transaction is due. Cheap. */
  touched(): void {
    const { ledger } = this.#lane
    if (this.#stopped || this.#running !== null || !ledger.dirty) return
    const { records, everyMs, movesEveryMs } = this.#limits
    const now = this.#world.clock.mono()
    this.#dirtySince ??= now
    if (ledger.pendingMoves > 0) this.#movesSince ??= now
    if (ledger.pendingSettled >= records) this.#start()
    else
      this.#at(Math.min(this.#dirtySince + everyMs, (this.#movesSince ?? Number.POSITIVE_INFINITY) + movesEveryMs), now)
  }

  /** Commits what is settled now, waiting for a transaction under way. */
  async flush(): Promise<void> {
    while (this.#running !== null) await this.#running
    if (this.#stopped || !this.#lane.ledger.dirty) return
    this.#start()
    await this.#running
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #at(atMs: number, now: number): void {
    if (atMs <= now) {
      this.#start()
      return
    }
    if (this.#timer !== null && this.#timer.atMs <= atMs) return
    this.#timer?.cancel()
    const cancel = this.#world.clock.after(atMs - now, () => {
      this.#timer = null
      this.#start()
    })
    this.#timer = { atMs, cancel }
  }

  #start(): void {
    if (this.#stopped || this.#running !== null) return
    this.#running = this.#commit().finally(() => {
      this.#running = null
      this.touched()
    })
  }

  async #commit(): Promise<void> {
    const { clock, observer, clockOffset } = this.#world
    const snapshot = this.#lane.ledger.snapshot()
    this.#timer?.cancel()
    this.#timer = null
    this.#dirtySince = null
    this.#movesSince = null
    if (snapshot === null) return
    const sentMs = clock.now()
    const started = clock.mono()
    try {
      const { records, offsets } = snapshot
      const appended = await this.#producer.transact({ records, group: this.#group, offsets })
      this.lastMs = clock.mono() - started
      observer.time('commit', this.lastMs)
      const receivedMs = clock.now()
      for (const { appendTimeMs } of appended) {
        if (appendTimeMs !== null) clockOffset.sample(sentMs, receivedMs, appendTimeMs)
      }
      if (this.#stopped) return
      this.#succeeded()
      this.#lane.committed(snapshot, appended)
    } catch (error) {
      if (this.#stopped) return
      this.stop()
      const { partition: lane, epoch } = this.#lane
      const code = codeOf(error)
      const fields = { lane, epoch, error: messageOf(error), code, records: snapshot.records.length }
      observer.log('error', 'lane.commit_failed', fields)
      observer.count('commit_failed', 1, { code })
      this.#failed()
    }
  }
}
