import type { LaneState } from '../core/lane-state.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { OriginFilter } from '../core/origin-filter.ts'
import type { GroupOffset, InRecord, OutRecord } from '../core/record.ts'
import type { Appended } from '../ports.ts'
import { type LaneTopics, sourceTopics } from './lane-topics.ts'
import { Pending } from './pending.ts'
import type { Work } from './work.ts'

/** One transaction's worth: what is written and what is done by it. */
export interface LaneSnapshot {
  readonly records: readonly OutRecord[]
  readonly offsets: readonly GroupOffset[]
  readonly parked: number
}

/**
 * What of a lane is done and what is still to be written: trackers of its sources and the pending transaction, kept
 * together because a move and the completion of its source must be in the same one.
 */
export class Ledger {
  readonly trackers: readonly OffsetTracker[]
  readonly #sources: readonly string[]
  readonly #topics: LaneTopics
  readonly #partition: number
  readonly #filter: OriginFilter
  readonly #pending: Pending
  /** Tracker versions that stand in a commit, under way or done. */
  readonly #committed: number[]
  #parkedEnd: number
  /** Moves to `parked` in transactions whose end is not known. */
  #parkedUnderWay = 0

  constructor(
    topics: LaneTopics,
    partition: number,
    start: { trackers: readonly OffsetTracker[]; filter: OriginFilter; parkedEnd: number },
  ) {
    this.trackers = start.trackers
    this.#topics = topics
    this.#sources = sourceTopics(topics)
    this.#partition = partition
    this.#filter = start.filter
    this.#parkedEnd = start.parkedEnd
    this.#pending = new Pending(topics.laneState, partition)
    this.#committed = start.trackers.map((tracker) => tracker.version)
  }

  get deliveries(): OffsetTracker {
    return this.trackers[0] as OffsetTracker
  }

  sourceName(index: number): string {
    return this.#sources[index] as string
  }

  /** A router's repeat; `deliveries` records only, in log order. */
  repeats(record: InRecord, work: Pick<Work, 'delivery'>): boolean {
    return !this.#filter.accept(record.offset, work.delivery.origin, work.delivery.subscriptionId)
  }

  /** The source is done with the next commit; a parked one by its line's state. */
  done(index: number, offset: number): void {
    this.trackers[index]?.done(offset)
    this.#pending.settled()
  }

  doneParked(): void {
    this.#pending.settled()
  }

  move(record: OutRecord): void {
    this.#pending.move(record)
  }

  park(record: OutRecord): void {
    this.#pending.park(record)
  }

  append(record: OutRecord): void {
    this.#pending.append(record)
  }

  /** Writes to `lane-state`; null: tombstone. */
  state(key: string, state: LaneState | null): void {
    this.#pending.state(key, state)
  }

  /** A lower bound of the offset that the next append to `parked` gets. */
  get parkedEnd(): number {
    return this.#parkedEnd
  }

  /** Readers are at `offset`: whatever is appended later lies there or above. */
  parkedRead(offset: number): void {
    this.#parkedEnd = Math.max(this.#parkedEnd, offset)
  }

  /** Every record counted by a line's state lies below `parkedEnd`. */
  get parkedSettled(): boolean {
    return this.#pending.parked === 0 && this.#parkedUnderWay === 0
  }

  get dirty(): boolean {
    return !this.#pending.empty || this.trackers.some((tracker, index) => tracker.version !== this.#committed[index])
  }

  get pendingMoves(): number {
    return this.#pending.moves
  }

  get pendingSettled(): number {
    return this.#pending.settledCount
  }

  /** One synchronous snapshot of everything since the last one; null when nothing changed. */
  snapshot(): LaneSnapshot | null {
    if (!this.dirty) return null
    const offsets: GroupOffset[] = []
    for (const [index, tracker] of this.trackers.entries()) {
      if (tracker.version === this.#committed[index]) continue
      this.#committed[index] = tracker.version
      offsets.push({
        topic: this.sourceName(index),
        partition: this.#partition,
        offset: tracker.base,
        metadata: tracker.metadata(),
      })
    }
    const taken = this.#pending.take(this.#filter.advance(this.deliveries.base))
    this.#parkedUnderWay += taken.parked
    return { records: taken.records, offsets, parked: taken.parked }
  }

  committed(snapshot: LaneSnapshot, appended: readonly Appended[]): void {
    this.#parkedUnderWay -= snapshot.parked
    for (const part of appended) {
      if (part.topic === this.#topics.parked) this.#parkedEnd = Math.max(this.#parkedEnd, part.firstOffset + part.count)
    }
  }
}
