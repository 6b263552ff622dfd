import type { Clock } from '../ports.ts'

/**
 * So many lines a second and no more: a line for each of thousands of successes a second costs more than signing them,
 * and nobody reads it; each stands in `attempts` anyhow. What was left out is told by the next line.
 */
export class LogQuota {
  readonly #clock: Clock
  readonly #perSecond: number
  #secondStartMs = Number.NEGATIVE_INFINITY
  #used = 0
  #skipped = 0

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock
    this.#perSecond = perSecond
  }

  /** Null: no line. Else how many were left out since the last one. */
  admit(): number | null {
    const now = this.#clock.mono()
    if (now - this.#secondStartMs >= 1_000) {
      this.#secondStartMs = now
      this.#used = 0
    }
    if (this.#used >= this.#perSecond) {
      this.#skipped++
      return null
    }
    this.#used++
    const skipped = this.#skipped
    this.#skipped = 0
    return skipped
  }
}
