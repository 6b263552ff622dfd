import type { Origin } from './delivery.ts'

/** The last delivery of a stream that counts: (generation, offset, subscription id) only grows within `deliveries[p]`. */
export interface StreamMark {
  readonly stream: string
  readonly generation: number
  readonly offset: number
  readonly subscriptionId: string
}

/**
 * Tells a router's repeat from a new delivery (design, "Fan-out exactly once"; KIP-98 does the same by sequence number
 * for one producer, this holds across producers). `seen` is ahead of the log's committed watermark, `asOf` trails with
 * it: what is written to `lane-state` is the mark as of the committed watermark, so a successor that reads on from
 * there decides the same.
 */
export class OriginFilter {
  readonly #seen = new Map<string, StreamMark>()
  readonly #asOf = new Map<string, StreamMark>()
  readonly #history = new History()

  restore(mark: StreamMark): void {
    this.#seen.set(mark.stream, mark)
    this.#asOf.set(mark.stream, mark)
  }

  /** A `deliveries` record, in log order, done or not. False: a repeat. */
  accept(logOffset: number, origin: Origin, subscriptionId: string): boolean {
    const last = this.#seen.get(origin.stream)
    if (last !== undefined && !isAfter(origin, subscriptionId, last)) return false
    const mark = { stream: origin.stream, generation: origin.generation, offset: origin.offset, subscriptionId }
    this.#seen.set(origin.stream, mark)
    this.#history.push(logOffset, mark)
    return true
  }

  /** The watermark is about to be committed at `base`: the marks that changed since the last call. */
  advance(base: number): readonly StreamMark[] {
    const changed = this.#history.shiftBelow(base)
    for (const mark of changed) this.#asOf.set(mark.stream, mark)
    return changed
  }

  get streams(): number {
    return this.#asOf.size
  }
}

/** Marks by log offset, ascending. In columns: behind one open delivery there can be a million of them. */
class History {
  #offsets: number[] = []
  #streams: string[] = []
  #generations: number[] = []
  #origins: number[] = []
  #subscriptions: string[] = []
  #from = 0
  /** One string for each name, not one for each record. */
  #names = new Map<string, string>()

  push(logOffset: number, { stream, generation, offset, subscriptionId }: StreamMark): void {
    this.#offsets.push(logOffset)
    this.#streams.push(this.#name(stream))
    this.#generations.push(generation)
    this.#origins.push(offset)
    this.#subscriptions.push(this.#name(subscriptionId))
  }

  /** Takes away what lies below `base`: the last mark of each stream. */
  shiftBelow(base: number): StreamMark[] {
    const last = new Map<string, number>()
    let i = this.#from
    for (; i < this.#offsets.length && (this.#offsets[i] as number) < base; i++) last.set(this.#streams[i] as string, i)
    this.#from = i
    const marks = [...last].map(([stream, at]) => ({
      stream,
      generation: this.#generations[at] as number,
      offset: this.#origins[at] as number,
      subscriptionId: this.#subscriptions[at] as string,
    }))
    if (i > 1_024 && i * 2 > this.#offsets.length) this.#trim()
    return marks
  }

  #trim(): void {
    const from = this.#from
    this.#offsets = this.#offsets.slice(from)
    this.#streams = this.#streams.slice(from)
    this.#generations = this.#generations.slice(from)
    this.#origins = this.#origins.slice(from)
    this.#subscriptions = this.#subscriptions.slice(from)
    this.#names = new Map()
    this.#from = 0
  }

  #name(text: string): string {
    const known = this.#names.get(text)
    if (known !== undefined) return known
    this.#names.set(text, text)
    return text
  }
}

function isAfter(origin: Origin, subscriptionId: string, last: StreamMark): boolean {
  if (origin.generation !== last.generation) return origin.generation > last.generation
  if (origin.offset !== last.offset) return origin.offset > last.offset
  return subscriptionId > last.subscriptionId
}
