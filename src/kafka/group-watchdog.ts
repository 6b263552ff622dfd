import type { Clock } from '../ports.ts'

/** Says when failures that should not happen come too often to go on: more than `max` within a minute. */
export class FailureBudget {
  readonly #clock: Clock
  readonly #max: number
  #times: number[] = []

  constructor(clock: Clock, max: number) {
    this.#clock = clock
    this.#max = max
  }

  /** Counts one failure; true when the budget is used up. */
  spend(): boolean {
    const now = this.#clock.mono()
    this.#times = this.#times.filter((at) => now - at < 60_000)
    this.#times.push(now)
    return this.#times.length > this.#max
  }
}

/** A wait that can be ended early, by time or by `fire`. A `fire` with nobody waiting is remembered for the next wait. */
export class Wakeup {
  readonly #clock: Clock
  #fired = false
  #wake: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  fire(): void {
    this.#fired = true
    this.#wake?.()
  }

  async wait(ms: number): Promise<void> {
    if (!this.#fired) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(ms, resolve)
        this.#wake = () => {
          cancel()
          resolve()
        }
      })
      this.#wake = undefined
    }
    this.#fired = false
  }
}
