/**
 * What is done of one topic-partition of a lane. `base` is the lowest offset that is not done: what may be committed.
 * Above it a bitset says what is done already, so a successor repeats nothing but what was open. Offsets that were never
 * seen (transaction markers, aborted or compacted records) count as done as soon as the reader is past them.
 *
 * The span `next − base` never exceeds `maxSpan`: that bounds memory and lets the bitset always fit commit metadata
 * (16,384 bits are 2,732 base64 characters; the broker's limit is 4,096).
 */
export class OffsetTracker {
  readonly maxSpan: number
  #base: number
  #next: number
  /** Highest offset known to be done or seen, plus one; above `next` only right after `restore`. */
  #high: number
  /** Bits set in [base, next). */
  #doneSeen = 0
  #version = 0
  readonly #bits: Uint32Array
  readonly #mask: number

  constructor(start: number, maxSpan = 16_384) {
    if (maxSpan < 32 || (maxSpan & (maxSpan - 1)) !== 0) {
      throw new RangeError(`maxSpan ${maxSpan} must be a power of two, 32 or more`)
    }
    this.maxSpan = maxSpan
    this.#base = start
    this.#next = start
    this.#high = start
    this.#bits = new Uint32Array(maxSpan / 32)
    this.#mask = maxSpan - 1
  }

  /** Continues where a committed offset and its metadata say. Metadata that is not ours is ignored: `understood` is false. */
  static restore(start: number, metadata: string, maxSpan = 16_384): { tracker: OffsetTracker; understood: boolean } {
    const tracker = new OffsetTracker(start, maxSpan)
    const bytes = decodeBits(metadata, maxSpan)
    if (bytes === null) return { tracker, understood: metadata === '' }
    for (let i = 0; i < bytes.length * 8; i++) {
      if ((((bytes[i >> 3] as number) >> (i & 7)) & 1) === 0) continue
      tracker.#set(start + i)
      tracker.#high = start + i + 1
    }
    return { tracker, understood: true }
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

  /** May `offset` be seen without breaking the span's bound? */
  admits(offset: number): boolean {
    return offset < this.#next || this.undone === 0 || offset - this.#base < this.maxSpan
  }

  /**
   * Notes a record that was read; the caller has asked `admits`. False when there is nothing to do for it: seen
   * already, or finished by a predecessor.
   */
  see(offset: number): boolean {
    if (offset < this.#next) return false
    this.pass(offset)
    const finished = offset < this.#high && this.#get(offset)
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
      const end = Math.min(nextOffset, this.#base + this.maxSpan)
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

  /** Commit metadata: `h1:` and, when anything above `base` is done, the base64 bitset of `base + i`. ASCII, ≤ 2,735 characters. */
  metadata(): string {
    if (this.#doneSeen === 0 && this.#high === this.#next) return prefix
    const bytes = Buffer.alloc(Math.ceil((this.#high - this.#base) / 8))
    for (let offset = this.#base; offset < this.#high; offset++) {
      if (!this.#get(offset)) continue
      const i = offset - this.#base
      bytes[i >> 3] = (bytes[i >> 3] as number) | (1 << (i & 7))
    }
    return prefix + bytes.toString('base64')
  }

  #advance(): void {
    while (this.#base < this.#next && this.#get(this.#base)) {
      this.#clear(this.#base)
      this.#doneSeen--
      this.#base++
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

const prefix = 'h1:'

function decodeBits(metadata: string, maxSpan: number): Buffer | null {
  if (!metadata.startsWith(prefix)) return null
  const text = metadata.slice(prefix.length)
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null
  const bytes = Buffer.from(text, 'base64')
  return bytes.length * 8 > maxSpan ? null : bytes
}
