import { Heap } from '../core/heap.ts'
import type { Work } from './work.ts'

/**
 * Records of one tier partition that are not ready: first in log order until ripe (append time + delay, so the head
 * decides), then, for what is left below the smallest tier, in a heap by due time. Bounded by the lane pausing the partition.
 */
export class TierQueue {
  readonly delayMs: number
  readonly #fifo: { ripeMs: number; work: Work }[] = []
  #from = 0
  readonly #heap = new Heap<Work>((a, b) => dueOf(a) - dueOf(b))
  #bytes = 0

  constructor(delayMs: number) {
    this.delayMs = delayMs
  }

  get size(): number {
    return this.#fifo.length - this.#from + this.#heap.size
  }

  get bytes(): number {
    return this.#bytes
  }

  push(work: Work, appendMs: number): void {
    this.#fifo.push({ ripeMs: appendMs + this.delayMs, work })
    this.#bytes += work.bytes
  }

  /** Something is ripe or due. */
  ready(brokerNowMs: number, nowMs: number): boolean {
    const head = this.#fifo[this.#from]
    if (head !== undefined && head.ripeMs <= brokerNowMs) return true
    const due = this.#heap.peek()
    return due !== undefined && dueOf(due) <= nowMs
  }

  /** The head, if its tier delay is over on the broker's clock. */
  peekRipe(brokerNowMs: number): Work | null {
    const head = this.#fifo[this.#from]
    return head === undefined || head.ripeMs > brokerNowMs ? null : head.work
  }

  /** Takes what `peekRipe` showed. */
  takeRipe(brokerNowMs: number): Work | null {
    const head = this.#fifo[this.#from]
    if (head === undefined || head.ripeMs > brokerNowMs) return null
    this.#from++
    if (this.#from > 64 && this.#from * 2 > this.#fifo.length) {
      this.#fifo.splice(0, this.#from)
      this.#from = 0
    }
    this.#bytes -= head.work.bytes
    return head.work
  }

  /** Ripe, but not yet due, and too close for another tier. */
  wait(work: Work): void {
    this.#heap.push(work)
    this.#bytes += work.bytes
  }

  takeDue(nowMs: number): Work | null {
    const head = this.#heap.peek()
    if (head === undefined || dueOf(head) > nowMs) return null
    this.#heap.pop()
    this.#bytes -= head.bytes
    return head
  }

  /** When to look again: the earlier of the next ripening (broker clock) and the next due time; null when empty. */
  nextMs(brokerAheadMs: number): number | null {
    const ripe = this.#fifo[this.#from]?.ripeMs
    const due = this.#heap.peek()
    const times = []
    if (ripe !== undefined) times.push(ripe - brokerAheadMs)
    if (due !== undefined) times.push(dueOf(due))
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Lowest due time held, for the vital signs. The head ripens first, so it stands for the log-ordered part. */
  lowestDueMs(): number | null {
    const head = this.#fifo[this.#from]
    const due = this.#heap.peek()
    const times = []
    if (head !== undefined) times.push(Math.max(head.ripeMs, dueOf(head.work)))
    if (due !== undefined) times.push(dueOf(due))
    return times.length === 0 ? null : Math.min(...times)
  }
}

export function dueOf(work: Work): number {
  return work.delivery.dueMs ?? 0
}
