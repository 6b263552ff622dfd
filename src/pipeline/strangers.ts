import type { Clock } from '../ports.ts'
import type { Work } from './work.ts'

export interface Stranger {
  readonly work: Work
  /** The line it leads, for a record back from a tier. */
  readonly lineKey: string | null
}

/**
 * Deliveries whose subscription the table does not know: it may be behind the router's, so it is brought up to date
 * before anything is cancelled. Later deliveries of the same subscription wait here too, or they would overtake.
 */
export class Strangers {
  readonly #clock: Clock
  readonly #freshen: () => Promise<void>
  readonly #resolve: (strangers: readonly Stranger[]) => void
  /** Asked about now; who came meanwhile waits for the next look, this one may have been too early. */
  #asked: Stranger[] = []
  #waiting: Stranger[] = []
  #closed = false

  constructor(clock: Clock, freshen: () => Promise<void>, resolve: (strangers: readonly Stranger[]) => void) {
    this.#clock = clock
    this.#freshen = freshen
    this.#resolve = resolve
  }

  has(subscriptionId: string): boolean {
    const same = ({ work }: Stranger) => work.delivery.subscriptionId === subscriptionId
    return this.#asked.some(same) || this.#waiting.some(same)
  }

  hold(stranger: Stranger): void {
    this.#waiting.push(stranger)
    if (this.#asked.length === 0) this.#ask()
  }

  close(): void {
    this.#closed = true
    this.#asked = []
    this.#waiting = []
  }

  #ask(): void {
    this.#asked.push(...this.#waiting.splice(0))
    this.#freshen().then(
      () => {
        if (this.#closed) return
        const strangers = this.#asked
        this.#asked = []
        this.#resolve(strangers)
        if (this.#asked.length === 0 && this.#waiting.length > 0) this.#ask()
      },
      () => {
        this.#clock.after(1_000, () => {
          if (!this.#closed) this.#ask()
        })
      },
    )
  }
}
