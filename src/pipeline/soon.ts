import type { Clock } from '../ports.ts'

/** Calls `fn` once in a moment, however often it is asked to: not now, because who asks is in the middle of a step. */
export class Soon {
  readonly #clock: Clock
  readonly #fn: () => void
  #asked = false

  constructor(clock: Clock, fn: () => void) {
    this.#clock = clock
    this.#fn = fn
  }

  ask(): void {
    if (this.#asked) return
    this.#asked = true
    this.#clock.after(0, () => {
      this.#asked = false
      this.#fn()
    })
  }
}
