/** What the receiver has seen of the deliveries base … base + count − 1. Times are `monoMs`; 0: not yet. */
export interface Report {
  /** POSTs in all, of these numbers. */
  readonly posts: number
  readonly distinct: number
  /** Numbers below one that was seen before of the same ordering key. */
  readonly outOfOrder: number
  readonly otherPosts: number
  readonly first: Float64Array
  readonly second: Float64Array
  readonly due: Float64Array
  readonly produced: Float64Array
}

export class Tally {
  readonly #base: number
  readonly #count: number
  readonly #seen: Uint16Array
  readonly #first: Float64Array
  readonly #second: Float64Array
  readonly #due: Float64Array
  readonly #produced: Float64Array
  readonly #lastOfKey = new Map<number, number>()
  #posts = 0
  #others = 0
  #distinct = 0
  #outOfOrder = 0
  /** Shares of the count that are reported when they are reached; 0: the first. */
  readonly #marks: number[]

  constructor(base: number, count: number) {
    this.#base = base
    this.#count = count
    this.#seen = new Uint16Array(count)
    this.#first = new Float64Array(count)
    this.#second = new Float64Array(count)
    this.#due = new Float64Array(count)
    this.#produced = new Float64Array(count)
    this.#marks = count === 0 ? [] : [0, 0.2, 1]
  }

  /** How often this number has been seen, this time included; 0 for one that is not counted. */
  arrived(n: number, key: number, producedMs: number, nowMs: number): number {
    const i = n - this.#base
    if (!(i >= 0 && i < this.#count)) {
      this.#others++
      return 0
    }
    this.#posts++
    const seen = (this.#seen[i] as number) + 1
    this.#seen[i] = seen
    if (seen === 1) {
      this.#distinct++
      this.#first[i] = nowMs
      this.#produced[i] = producedMs
      if (n < (this.#lastOfKey.get(key) ?? -1)) this.#outOfOrder++
      else this.#lastOfKey.set(key, n)
    } else if (seen === 2) this.#second[i] = nowMs
    return seen
  }

  dueAt(n: number, ms: number): void {
    this.#due[n - this.#base] = ms
  }

  /** Shares reached since it was last asked. */
  marks(): readonly number[] {
    const next = this.#marks[0]
    if (next === undefined || this.#distinct < Math.max(1, Math.ceil(next * this.#count))) return none
    this.#marks.shift()
    return [next, ...this.marks()]
  }

  /** POSTs of these numbers so far, and how many numbers they were. */
  get counts(): { readonly posts: number; readonly distinct: number } {
    return { posts: this.#posts, distinct: this.#distinct }
  }

  report(): Report {
    return {
      posts: this.#posts,
      distinct: this.#distinct,
      outOfOrder: this.#outOfOrder,
      otherPosts: this.#others,
      first: this.#first,
      second: this.#second,
      due: this.#due,
      produced: this.#produced,
    }
  }
}

const none: readonly number[] = []
