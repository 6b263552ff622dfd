import type { Origin } from '../core/delivery.ts'
import type { LaneState, OffsetsState } from '../core/lane-state.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { OriginFilter } from '../core/origin-filter.ts'
import type { GroupOffset, OutRecord } from '../core/record.ts'
import type { Appended, Observer } from '../ports.ts'
import { type LaneTopics, sourceTopics } from './lane-topics.ts'
import { Pending } from './pending.ts'

/** One transaction's worth: what is written and what is done by it. */
export interface LaneSnapshot {
  readonly records: readonly OutRecord[]
  readonly offsets: readonly GroupOffset[]
  readonly parked: number
  readonly bytes: number
  /** Called when it is committed. */
  readonly after: readonly (() => void)[]
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
  readonly #observer: Observer
  readonly #filter: OriginFilter
  readonly #pending: Pending
  /** Tracker versions that stand in a commit, under way or done. */
  readonly #committed: number[]
  #parkedEnd: number
  /** Sources of which something is written down beside the metadata. */
  readonly #beside: Set<string>
  /** Bytes of records in transactions whose end is not known. */
  #bytesUnderWay = 0
  /** Moves to `parked` in transactions whose end is not known. */
  #parkedUnderWay = 0
  #after: (() => void)[] = []

  constructor(
    world: { readonly topics: LaneTopics; readonly observer: Observer },
    partition: number,
    start: {
      readonly trackers: readonly OffsetTracker[]
      readonly filter: OriginFilter
      readonly parkedEnd: number
      readonly beside: ReadonlyMap<string, OffsetsState>
    },
  ) {
    const { topics, observer } = world
    this.trackers = start.trackers
    this.#topics = topics
    this.#observer = observer
    this.#sources = sourceTopics(topics)
    this.#partition = partition
    this.#filter = start.filter
    this.#parkedEnd = start.parkedEnd
    this.#beside = new Set(start.beside.keys())
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
  repeats(offset: number, origin: Origin, subscriptionId: string): boolean {
    return !this.#filter.accept(offset, origin, subscriptionId)
  }

  /** Such a one is done. */
  repeated(offset: number): void {
    this.#observer.count('repeats_dropped')
    this.done(0, offset)
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

  /** What is to be told only when what is written now is committed. */
  afterCommit(fn: () => void): void {
    this.#after.push(fn)
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

  /** Bytes of what is to be written or being written, about. */
  get unwrittenBytes(): number {
    return this.#pending.bytes + this.#bytesUnderWay
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
        metadata: this.#marks(index, tracker),
      })
    }
    const taken = this.#pending.take(this.#filter.advance(this.deliveries.base))
    this.#parkedUnderWay += taken.parked
    this.#bytesUnderWay += taken.bytes
    const after = this.#after
    this.#after = []
    return { ...taken, offsets, after }
  }

  /** The metadata of a commit; what has no room in it goes into the same transaction. */
  #marks(index: number, tracker: OffsetTracker): string {
    const topic = this.sourceName(index)
    const { metadata, beside } = tracker.marks()
    const state: OffsetsState | null =
      beside === null ? null : { v: 1, kind: 'offsets', topic, base: tracker.base, runs: beside }
    if (state !== null) this.#beside.add(topic)
    else if (!this.#beside.delete(topic)) return metadata
    this.#pending.state(`offsets:${topic}`, state)
    return metadata
  }

  committed(snapshot: LaneSnapshot, appended: readonly Appended[]): void {
    this.#parkedUnderWay -= snapshot.parked
    for (const fn of snapshot.after) fn()
    this.#bytesUnderWay -= snapshot.bytes
    for (const part of appended) {
      if (part.topic === this.#topics.parked) this.#parkedEnd = Math.max(this.#parkedEnd, part.firstOffset + part.count)
    }
  }
}
