import type { TopicPartition } from '../core/record.ts'
import type { Clock } from '../ports.ts'

/** A topic of which something came within this time is busy. */
const busyMs = 1_000

export interface Turn<T> {
  readonly first: readonly T[]
  readonly partitions: readonly T[]
  readonly maxWaitMs: number
}

/**
 * Which partitions a fetch asks for. While one topic is busy, a broker is asked for something new hundreds of times a second,
 * and each answer would name every retry partition only to say that nothing is there: those of quiet topics are asked for
 * once in the longest time that a fetch may wait, which is as soon as they would have been without the busy ones.
 */
export class FetchTurns {
  readonly #clock: Clock
  readonly #maxWaitMs: number
  /** Mono ms. */
  readonly #lastData = new Map<string, number>()
  readonly #lastWhole = new Map<number, number>()

  constructor(clock: Clock, maxWaitMs: number) {
    this.#clock = clock
    this.#maxWaitMs = maxWaitMs
  }

  /** Something of the topic came. */
  came(topic: string): void {
    this.#lastData.set(topic, this.#clock.mono())
  }

  /**
   * Of those that can be fetched from this broker now; `maxWaitMs`: how long it may hold the fetch. `first` stand in front of
   * the request: a full response would serve only the busy ones for ever.
   */
  choose<T extends TopicPartition>(node: number, all: readonly T[]): Turn<T> {
    const now = this.#clock.mono()
    const isBusy = ({ topic }: T) => now - (this.#lastData.get(topic) ?? Number.NEGATIVE_INFINITY) < busyMs
    const busy = all.filter(isBusy)
    const mixed = busy.length > 0 && busy.length < all.length
    const quietForMs = now - (this.#lastWhole.get(node) ?? Number.NEGATIVE_INFINITY)
    if (mixed && quietForMs < this.#maxWaitMs)
      return { first: [], partitions: busy, maxWaitMs: Math.max(1, Math.ceil(this.#maxWaitMs - quietForMs)) }
    this.#lastWhole.set(node, now)
    const first = mixed ? all.filter((partition) => !isBusy(partition)) : []
    return { first, partitions: mixed ? busy : all, maxWaitMs: this.#maxWaitMs }
  }
}
