import { type LaneState, laneStateKey } from '../core/lane-state.ts'
import type { StreamMark } from '../core/origin-filter.ts'
import { emptyHeaders, type OutRecord } from '../core/record.ts'

/**
 * What the next transaction of a lane will write, collected between two commits. A move is added in the same
 * synchronous step that marks its source done, so a snapshot holds both or neither.
 */
export class Pending {
  readonly #laneState: string
  readonly #partition: number
  #records: OutRecord[] = []
  #states = new Map<string, LaneState | null>()
  #moves = 0
  #parked = 0
  #settled = 0
  #bytes = 0

  constructor(laneState: string, partition: number) {
    this.#laneState = laneState
    this.#partition = partition
  }

  /** Records other than moves: attempts. */
  append(record: OutRecord): void {
    this.#records.push(record)
    this.#bytes += writtenBytes(record)
  }

  /** A record that something waits for: tier, parked, dead. */
  move(record: OutRecord): void {
    this.append(record)
    this.#moves++
  }

  park(record: OutRecord): void {
    this.move(record)
    this.#parked++
  }

  /** `key`: as `laneStateKey` makes it; null: tombstone. */
  state(key: string, state: LaneState | null): void {
    this.#states.set(key, state)
  }

  settled(): void {
    this.#settled++
  }

  get moves(): number {
    return this.#moves
  }

  get parked(): number {
    return this.#parked
  }

  /** Memory that the records take until they are written, about. */
  get bytes(): number {
    return this.#bytes
  }

  get settledCount(): number {
    return this.#settled
  }

  get empty(): boolean {
    return this.#records.length === 0 && this.#states.size === 0 && this.#settled === 0
  }

  /** Everything collected, with the stream marks of the watermark it is committed with; starts anew. */
  take(marks: readonly StreamMark[]): { records: OutRecord[]; parked: number; bytes: number } {
    const records = this.#records
    for (const [key, state] of this.#states) {
      records.push(this.#state(key, state === null ? null : Buffer.from(JSON.stringify(state))))
    }
    for (const mark of marks) {
      const value = { v: 1 as const, kind: 'stream' as const, ...mark }
      records.push(this.#state(laneStateKey(value), Buffer.from(JSON.stringify(value))))
    }
    const taken = { records, parked: this.#parked, bytes: this.#bytes }
    this.#records = []
    this.#states = new Map()
    this.#moves = 0
    this.#parked = 0
    this.#settled = 0
    this.#bytes = 0
    return taken
  }

  #state(key: string, value: Buffer | null): OutRecord {
    return { topic: this.#laneState, partition: this.#partition, key, value, headers: emptyHeaders }
  }
}

/** A body, and headers of their own. */
function writtenBytes(record: OutRecord): number {
  return (record.value?.length ?? 0) + 1_000
}
