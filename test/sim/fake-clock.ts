import type { Clock } from '../../src/ports.ts'
import { type Random, randomStream } from './random.ts'

interface Timer {
  readonly atMs: number
  readonly seq: number
  fn: (() => void) | null
}

// Kept from before any test library can replace it.
const nextTurn = globalThis.setImmediate

/**
 * Simulated time. It moves only in `advance`, `runUntil` and `drive`, from timer to timer, in the order (due time, order of creation).
 *
 * Between two timers everything that can run without time passing has run (`settle`). One turn of the event loop is
 * enough for that, however long the promise chains are: node empties the microtask and nextTick queues completely, also
 * of what is queued meanwhile, before it goes on to the next macrotask, and simulated code has no other source of
 * continuation: its I/O is the memory broker and the fake receiver, and both answer only through timers of this clock.
 * Code under simulation must therefore not use real timers, sockets, worker threads or the thread pool (async crypto, zlib, fs).
 */
export class FakeClock implements Clock {
  readonly #random: Random
  readonly #heap: Timer[] = []
  #wallMs: number
  #monoMs = 0
  #seq = 0
  #live = 0
  #fired = 0

  constructor(options: { seed?: number; startMs?: number } = {}) {
    this.#random = randomStream(options.seed ?? 1, 'clock')
    this.#wallMs = options.startMs ?? 1_800_000_000_000
  }

  now(): number {
    return Math.floor(this.#wallMs + this.#monoMs)
  }

  mono(): number {
    return this.#monoMs
  }

  random(): number {
    return this.#random()
  }

  after(ms: number, fn: () => void): () => void {
    const timer: Timer = { atMs: this.#monoMs + Math.max(0, ms), seq: this.#seq++, fn }
    this.#push(timer)
    this.#live++
    return () => {
      if (timer.fn === null) return
      timer.fn = null
      this.#live--
    }
  }

  /** Steps the wall clock; `mono` and timers don't notice. */
  jump(ms: number): void {
    this.#wallMs += ms
  }

  /** Timers that will still fire. */
  get pending(): number {
    return this.#live
  }

  /** Timers fired so far: a measure of a run's length, and of its determinism. */
  get fired(): number {
    return this.#fired
  }

  /** Lets everything run that needs no time. */
  settle(): Promise<void> {
    return new Promise((resolve) => nextTurn(resolve))
  }

  /** Fires what is due within `ms`, then stands exactly `ms` later. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#monoMs + ms
    await this.settle()
    while (await this.#step(untilMs));
    this.#monoMs = untilMs
  }

  /** Goes from timer to timer until `predicate` holds; false when it does not within `maxMs` or nothing is left to happen. */
  async runUntil(predicate: () => boolean, maxMs = 3_600_000): Promise<boolean> {
    const untilMs = this.#monoMs + maxMs
    await this.settle()
    while (!predicate()) if (!(await this.#step(untilMs))) return predicate()
    return true
  }

  /** Moves time on until `promise` is settled and passes its result on. Throws when nothing is left that could settle it. */
  async drive<T>(promise: Promise<T>, maxMs = 3_600_000): Promise<T> {
    let settled = false
    const mark = () => {
      settled = true
    }
    promise.then(mark, mark)
    if (!(await this.runUntil(() => settled, maxMs))) {
      throw new Error(`deadlock: promise not settled at ${Math.round(this.#monoMs)} ms, ${this.#live} timers pending`)
    }
    return promise
  }

  async #step(untilMs: number): Promise<boolean> {
    for (;;) {
      const timer = this.#heap[0]
      if (timer === undefined || timer.atMs > untilMs) return false
      this.#pop()
      const fn = timer.fn
      if (fn === null) continue
      timer.fn = null
      this.#live--
      this.#fired++
      if (timer.atMs > this.#monoMs) this.#monoMs = timer.atMs
      fn()
      await this.settle()
      return true
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let i = heap.length
    heap.push(timer)
    while (i > 0) {
      const up = (i - 1) >> 1
      const parent = heap[up] as Timer
      if (!before(timer, parent)) break
      heap[i] = parent
      i = up
    }
    heap[i] = timer
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Timer
    const size = heap.length
    if (size === 0) return
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= size) break
      if (child + 1 < size && before(heap[child + 1] as Timer, heap[child] as Timer)) child++
      if (!before(heap[child] as Timer, last)) break
      heap[i] = heap[child] as Timer
      i = child
    }
    heap[i] = last
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq)
}
