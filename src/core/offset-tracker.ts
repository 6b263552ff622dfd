import { decodeBits, decodeRuns, encodeBits, encodeRuns, isBits } from './offset-marks.ts'

export interface SpanLimits {
  /** Most offsets between `base` and `next`; a power of two, 32 or more. */
  readonly max: number
  /** Up to this span the metadata is a bitset: short enough whatever is done (16,384 bits are 2,732 base64 characters). */
  readonly bits: number
  /** Most characters of runs in the metadata; what is longer is written beside it. The broker takes 4,096 (`offset.metadata.max.bytes`). */
  readonly metadata: number
}

export const spanLimits: SpanLimits = { max: 1 << 20, bits: 16_384, metadata: 4_000 }

/** What a commit says of a tracker: the metadata, and what has no room there and is written beside it in the same transaction. */
export interface OffsetMarks {
  /** ASCII, at most 4,000 characters. */
  readonly metadata: string
  /** Runs, as `encodeRuns` makes them, when the metadata is `besideMetadata`; else null. */
  readonly beside: string | null
}

/**
 * What is done of one topic-partition of a lane. `base` is the lowest offset that is not done: what may be committed.
 * Above it a bitset says what is done already, so a successor repeats nothing but what was open. Offsets that were never
 * seen (transaction markers, aborted or compacted records) count as done as soon as the reader is past them.
 *
 * The span `next − base` never exceeds its limit: that bounds memory, and what a successor has to read again.
 */
export class OffsetTracker {
  readonly limits: SpanLimits
  #base: number
  #next: number
  /** Highest offset known to be done or seen, plus one; above `next` only right after `restore`. */
  #high: number
  /** Bits set in [base, next). */
  #doneSeen = 0
  #version = 0
  /** A ring over the offsets of the span; grows with it. */
  #bits: Uint32Array
  #mask: number

  constructor(start: number, limits = spanLimits) {
    if (limits.max < 32 || (limits.max & (limits.max - 1)) !== 0) {
      throw new RangeError(`span ${limits.max} must be a power of two, 32 or more`)
    }
    this.limits = limits
    this.#base = start
    this.#next = start
    this.#high = start
    const room = Math.min(limits.max, firstRoom)
    this.#bits = new Uint32Array(room / 32)
    this.#mask = room - 1
  }

  /**
   * Continues where a committed offset and its metadata say. `beside`: the runs written with that very commit, where there
   * are any. What is not ours is ignored: `understood` is false.
   */
  static restore(
    start: number,
    metadata: string,
    limits = spanLimits,
    beside: string | null = null,
  ): { tracker: OffsetTracker; understood: boolean } {
    const tracker = new OffsetTracker(start, limits)
    if (metadata === '') return { tracker, understood: true }
    const mark = (from: number, to: number) => tracker.#restored(start + from, start + to)
    const text = metadata === besideMetadata ? beside : metadata
    if (text === null) return { tracker, understood: false }
    const understood = isBits(text) ? decodeBits(text, limits.bits, mark) : decodeRuns(text, limits.max, mark)
    return { tracker, understood }
  }

  #restored(from: number, to: number): void {
    this.#makeRoom(to - this.#base)
    for (let offset = from; offset < to; offset++) this.#set(offset)
    this.#high = to
  }

  /** Lowest offset that is not done: what may be committed. */
  get base(): number {
    return this.#base
  }

  /** The next offset this reader has not seen. */
  get next(): number {
    return this.#next
  }

  /** Changes whenever what would be committed changes. */
  get version(): number {
    return this.#version
  }

  get span(): number {
    return this.#next - this.#base
  }

  /** Offsets seen and not done. */
  get undone(): number {
    return this.span - this.#doneSeen
  }

  /** As wide as it may be. */
  get full(): boolean {
    return this.span >= this.limits.max
  }

  /** May `offset` be seen without breaking the span's bound? */
  admits(offset: number): boolean {
    return offset < this.#next || this.undone === 0 || offset - this.#base < this.limits.max
  }

  /**
   * Notes a record that was read; the caller has asked `admits`. False when there is nothing to do for it: seen
   * already, or finished by a predecessor.
   */
  see(offset: number): boolean {
    if (offset < this.#next) return false
    this.pass(offset)
    const finished = offset < this.#high && this.#get(offset)
    this.#makeRoom(offset + 1 - this.#base)
    this.#next = offset + 1
    if (this.#high < this.#next) this.#high = this.#next
    if (finished) {
      this.#doneSeen++
      this.#version++
      this.#advance()
    }
    return !finished
  }

  /** The reader is at `nextOffset`: what lies below and was not seen does not exist. Stops at the span's bound. */
  pass(nextOffset: number): void {
    if (nextOffset <= this.#next) return
    this.#version++
    if (this.undone === 0) {
      const end = Math.min(nextOffset, this.#high)
      for (let offset = this.#base; offset < end; offset++) this.#clear(offset)
      this.#doneSeen = 0
      this.#base = nextOffset
      this.#next = nextOffset
    } else {
      const end = Math.min(nextOffset, this.#base + this.limits.max)
      this.#makeRoom(end - this.#base)
      for (let offset = this.#next; offset < end; offset++) this.#set(offset)
      this.#doneSeen += end - this.#next
      this.#next = end
    }
    if (this.#high < this.#next) this.#high = this.#next
  }

  /** Right after `restore`: the log begins at `start` only, what lay below is gone. */
  skipTo(start: number): void {
    this.pass(start)
    this.#advance()
  }

  done(offset: number): void {
    if (offset < this.#base || offset >= this.#next || this.#get(offset)) return
    this.#set(offset)
    this.#doneSeen++
    this.#version++
    this.#advance()
  }

  isDone(offset: number): boolean {
    return offset < this.#base || (offset < this.#high && this.#get(offset))
  }

  /** What a commit of `base` has to say besides: what is done above it. */
  marks(): OffsetMarks {
    const span = this.#doneSeen === 0 && this.#high === this.#next ? 0 : this.#high - this.#base
    const isDone = (i: number) => this.#get(this.#base + i)
    if (span <= this.limits.bits) return { metadata: encodeBits(span, isDone), beside: null }
    const runs = encodeRuns(this.#runs())
    return runs.length <= this.limits.metadata
      ? { metadata: runs, beside: null }
      : { metadata: besideMetadata, beside: runs }
  }

  /** Lengths of what is not done and done, by turns, from `base` on. */
  *#runs(): Iterable<number> {
    let from = this.#base
    let done = false
    for (let offset = this.#base; offset < this.#high; ) {
      const word = this.#bits[(offset & this.#mask) >>> 5] as number
      if ((offset & 31) === 0 && word === (done ? 0xffff_ffff : 0)) {
        offset += 32
        continue
      }
      if (this.#get(offset) !== done) {
        yield offset - from
        from = offset
        done = !done
      }
      offset++
    }
    if (done) yield this.#high - from
  }

  #advance(): void {
    while (this.#base < this.#next && this.#get(this.#base)) {
      this.#clear(this.#base)
      this.#doneSeen--
      this.#base++
    }
  }

  #makeRoom(span: number): void {
    let room = this.#mask + 1
    if (span <= room) return
    while (room < span) room *= 2
    const old = { bits: this.#bits, mask: this.#mask }
    this.#bits = new Uint32Array(room / 32)
    this.#mask = room - 1
    for (let offset = this.#base; offset < this.#base + old.mask + 1; offset++) {
      const i = offset & old.mask
      if (((old.bits[i >>> 5] as number) >>> (i & 31)) & 1) this.#set(offset)
    }
  }

  #get(offset: number): boolean {
    const i = offset & this.#mask
    return (((this.#bits[i >>> 5] as number) >>> (i & 31)) & 1) === 1
  }

  #set(offset: number): void {
    const i = offset & this.#mask
    this.#bits[i >>> 5] = (this.#bits[i >>> 5] as number) | (1 << (i & 31))
  }

  #clear(offset: number): void {
    const i = offset & this.#mask
    this.#bits[i >>> 5] = (this.#bits[i >>> 5] as number) & ~(1 << (i & 31))
  }
}

/** Bits in the ring at first; a multiple of 32. */
const firstRoom = 16_384
/** The runs stand in `lane-state`, written in the same transaction. */
export const besideMetadata = 'h3:'
