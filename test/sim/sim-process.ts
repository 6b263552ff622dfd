import type { Clock } from '../../src/ports.ts'
import type { FakeClock } from './fake-clock.ts'
import { type Random, randomStream } from './random.ts'

/**
 * A simulated operating system process: the clock its code is given, and the gate through which everything from outside
 * (timers, broker replies, HTTP replies) reaches it. Killing it closes the gate for good: code that awaits something then
 * never goes on, as after kill −9. Stalling it (SIGSTOP, a long GC) holds everything back; meanwhile the world goes on.
 */
export class SimProcess implements Clock {
  readonly id: string
  /** Tells apart the lives of a process that is started again under the same id. */
  readonly incarnation: number
  readonly #clock: FakeClock
  readonly #random: Random
  #waiting: (() => void)[] = []
  #skewMs = 0
  #alive = true
  #stalled: (() => void) | null = null

  constructor(id: string, incarnation: number, clock: FakeClock, seed: number) {
    this.id = id
    this.incarnation = incarnation
    this.#clock = clock
    this.#random = randomStream(seed, `process ${id} ${incarnation}`)
  }

  get alive(): boolean {
    return this.#alive
  }

  get stalled(): boolean {
    return this.#stalled !== null
  }

  now(): number {
    return this.#clock.now() + this.#skewMs
  }

  mono(): number {
    return this.#clock.mono()
  }

  random(): number {
    return this.#random()
  }

  after(ms: number, fn: () => void): () => void {
    let cancelled = false
    const cancel = this.#clock.after(ms, () =>
      this.enter(() => {
        if (!cancelled) fn()
      }),
    )
    return () => {
      cancelled = true
      cancel()
    }
  }

  /** Runs `fn` inside the process: now, after the stall, or never. */
  enter(fn: () => void): void {
    if (!this.#alive) return
    if (this.#stalled === null) fn()
    else this.#waiting.push(fn)
  }

  kill(): void {
    this.#alive = false
    this.#waiting = []
    this.#stalled?.()
    this.#stalled = null
  }

  stall(ms: number): void {
    if (!this.#alive || this.#stalled !== null) return
    this.#stalled = this.#clock.after(ms, () => this.#goOn())
  }

  /** Steps this machine's wall clock. */
  jump(ms: number): void {
    this.#skewMs += ms
  }

  get skewMs(): number {
    return this.#skewMs
  }

  #goOn(): void {
    // One at a time, each with its microtasks, as an event loop would after SIGCONT.
    this.#stalled = null
    const next = this.#waiting.shift()
    if (next === undefined) return
    if (this.#waiting.length > 0) this.#stalled = this.#clock.after(0, () => this.#goOn())
    next()
  }
}
