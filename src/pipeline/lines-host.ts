import type { LineState } from '../core/lane-state.ts'
import type { Line } from '../core/line.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { Work } from './work.ts'

/** What the lines need of their lane. Everything is synchronous: one step of the protocol is one step of the process. */
export interface LinesHost {
  /** Hands a work to the executor. */
  offer(work: Work): void
  /** Appends the work to `parked` in the next transaction and marks its source done there. */
  park(line: Line<Work>, work: Work): void
  /** Writes the line's state in the next transaction; null: tombstone. */
  writeState(line: Line<Work>, state: LineState | null): void
  /** Where the reader of `deliveries` is for this line: every record of it below has been seen. */
  deliveriesNext(line: Line<Work>): number
  /** A lower bound of the offset that the next append to `parked` gets. */
  parkedEnd(): number
  /** May this work of the line come out now, or, null, any (subscription active, circuit closed, or to be cancelled)? */
  runs(line: Line<Work>, work: Work | null): boolean
  /** A work for a record read from `parked`; null when it can't be decoded (the lane has dealt with it). */
  fromParked(record: FetchedBatch['records'][number], line: Line<Work>): Work | null
  lineOf(record: FetchedBatch['records'][number]): string | null
  nowMs(): number
  /** Memory is short: read ahead no more than is needed to go on. */
  tight(): boolean
  /** Parked records that the state counts are not in the log any more. */
  lost(line: Line<Work>, records: number): void
}
