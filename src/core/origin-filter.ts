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
  #history: { offset: number; mark: StreamMark }[] = []
  #trimmed = 0

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
    this.#history.push({ offset: logOffset, mark })
    return true
  }

  /** The watermark is about to be committed at `base`: the marks that changed since the last call. */
  advance(base: number): readonly StreamMark[] {
    const changed = new Map<string, StreamMark>()
    let i = this.#trimmed
    for (; i < this.#history.length; i++) {
      const entry = this.#history[i] as { offset: number; mark: StreamMark }
      if (entry.offset >= base) break
      changed.set(entry.mark.stream, entry.mark)
    }
    this.#trimmed = i
    if (i > 1024 && i * 2 > this.#history.length) {
      this.#history = this.#history.slice(i)
      this.#trimmed = 0
    }
    for (const [stream, mark] of changed) this.#asOf.set(stream, mark)
    return [...changed.values()]
  }

  get streams(): number {
    return this.#asOf.size
  }
}

function isAfter(origin: Origin, subscriptionId: string, last: StreamMark): boolean {
  if (origin.generation !== last.generation) return origin.generation > last.generation
  if (origin.offset !== last.offset) return origin.offset > last.offset
  return subscriptionId > last.subscriptionId
}
