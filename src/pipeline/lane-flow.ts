import type { OffsetTracker } from '../core/offset-tracker.ts'

/** Bytes of deliveries in memory, over all lanes of the process. */
export class MemoryBudget {
  readonly maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }

  get over(): boolean {
    return this.#bytes > this.maxBytes
  }

  get easy(): boolean {
    return this.#bytes < this.maxBytes * 0.8
  }
}

export interface FlowLimits {
  /** Records of `deliveries` in a lane's memory, and their bytes. */
  readonly maxRecords: number
  readonly maxBytes: number
  /** The same for one tier partition. */
  readonly tierMaxRecords: number
  readonly tierMaxBytes: number
}

export type PauseReason = 'records' | 'bytes' | 'process' | 'span'

export interface FlowControl {
  pause(index: number): void
  /** Continue reading; `seek` when records of the last batch were not taken. */
  resume(index: number, seek: boolean): void
}

/**
 * Which of a lane's partitions may be fetched: each pauses by its own count, bytes and span, all `deliveries` by the
 * process's bytes. Never one for another's sake.
 */
export class LaneFlow {
  readonly #limits: FlowLimits
  readonly #budget: MemoryBudget
  readonly #control: FlowControl
  readonly #records: number[]
  readonly #bytes: number[]
  readonly #paused: (PauseReason | null)[]
  readonly #truncated: boolean[]
  #otherBytes = 0
  /** What waits for its transaction has left the lane, not the memory. */
  #unwritten = 0
  #closed = false

  constructor(sources: number, limits: FlowLimits, budget: MemoryBudget, control: FlowControl) {
    this.#limits = limits
    this.#budget = budget
    this.#control = control
    this.#records = new Array(sources).fill(0)
    this.#bytes = new Array(sources).fill(0)
    this.#paused = new Array(sources).fill(null)
    this.#truncated = new Array(sources).fill(false)
  }

  /** `index` null: read from `parked`, bounded per line. */
  added(index: number | null, bytes: number): void {
    if (this.#closed) return
    this.#budget.add(bytes)
    if (index === null) this.#otherBytes += bytes
    else {
      this.#records[index] = (this.#records[index] as number) + 1
      this.#bytes[index] = (this.#bytes[index] as number) + bytes
    }
  }

  removed(index: number | null, bytes: number): void {
    if (this.#closed) return
    this.#budget.add(-bytes)
    if (index === null) this.#otherBytes -= bytes
    else {
      this.#records[index] = (this.#records[index] as number) - 1
      this.#bytes[index] = (this.#bytes[index] as number) - bytes
    }
  }

  /** The rest of a batch was left: the span is full. Reading starts again behind what was taken. */
  truncated(index: number): void {
    this.#truncated[index] = true
    this.#pause(index, 'span')
  }

  update(trackers: readonly OffsetTracker[], unwrittenBytes: number): void {
    if (this.#closed) return
    this.#budget.add(unwrittenBytes - this.#unwritten)
    this.#unwritten = unwrittenBytes
    for (let index = 0; index < this.#records.length; index++) {
      const tracker = trackers[index] as OffsetTracker
      const reason = this.#paused[index] as PauseReason | null
      if (reason === null) {
        const why = this.#tooMuch(index, tracker, 1)
        if (why !== null) this.#pause(index, why)
      } else if (this.#tooMuch(index, tracker, 0.5) === null) {
        this.#paused[index] = null
        this.#control.resume(index, this.#truncated[index] as boolean)
        this.#truncated[index] = false
      }
    }
  }

  /** Paused partitions by reason. */
  *pauses(): Iterable<{ index: number; reason: PauseReason }> {
    for (const [index, reason] of this.#paused.entries()) if (reason !== null) yield { index, reason }
  }

  /** The process holds as much as it may: read ahead no more than is needed to go on. */
  get tight(): boolean {
    return this.#budget.over
  }

  /** After a rejoin everything is paused by the consumer: what should run is resumed by the runner. */
  runs(index: number): boolean {
    return this.#paused[index] === null
  }

  /** Another record of `deliveries` may come into memory, wherever it is read. */
  get room(): boolean {
    return this.#tooMany(0, 1) === null
  }

  records(index: number): number {
    return this.#records[index] ?? 0
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#budget.add(-this.#bytes.reduce((a, b) => a + b, this.#otherBytes + this.#unwritten))
  }

  #pause(index: number, reason: PauseReason): void {
    this.#paused[index] = reason
    this.#control.pause(index)
  }

  #tooMuch(index: number, tracker: OffsetTracker, share: number): PauseReason | null {
    if (share === 1 ? tracker.full : tracker.span >= tracker.limits.max * 0.9) return 'span'
    return this.#tooMany(index, share)
  }

  #tooMany(index: number, share: number): PauseReason | null {
    const { maxRecords, maxBytes, tierMaxRecords, tierMaxBytes } = this.#limits
    if ((this.#records[index] as number) > (index === 0 ? maxRecords : tierMaxRecords) * share) return 'records'
    const bytes = (this.#bytes[index] as number) + (index === 0 ? this.#unwritten : 0)
    if (bytes > (index === 0 ? maxBytes : tierMaxBytes) * share) return 'bytes'
    if (index === 0 && (share === 1 ? this.#budget.over : !this.#budget.easy)) return 'process'
    return null
  }
}
