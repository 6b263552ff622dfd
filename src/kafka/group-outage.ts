import { messageOf } from '../core/error.ts'
import type { Clock, Observer } from '../ports.ts'

const firstMs = 100
const longestMs = 2000

/** A coordinator that moves or is being made is gone for a moment in any case: worth a line only when it lasts. */
const quietMs = 2000

const remedy = 'Check that the brokers are up and reachable; consumption goes on by itself when they are.'

/** A stretch of time in which nothing works: one line when it begins, one when it is over, none in between. */
export class Outage {
  readonly #clock: Clock
  readonly #observer: Observer
  readonly #group: string
  #now: { readonly sinceMono: number; tries: number; told: boolean } | undefined

  constructor(clock: Clock, observer: Observer, group: string) {
    this.#clock = clock
    this.#observer = observer
    this.#group = group
  }

  get going(): boolean {
    return this.#now !== undefined
  }

  /** Counts one failure and returns how long to wait before the next try; a little random, so that members do not come in step. */
  failed(error: unknown, expected: 'passing' | 'lasting' = 'lasting'): number {
    this.#now ??= { sinceMono: this.#clock.mono(), tries: 0, told: false }
    const now = this.#now
    if (!now.told && (expected === 'lasting' || this.#clock.mono() - now.sinceMono > quietMs)) {
      now.told = true
      this.#observer.log('warn', 'consumer.unavailable', { group: this.#group, reason: messageOf(error), remedy })
    }
    const delayMs = Math.min(longestMs, firstMs * 2 ** Math.min(now.tries++, 10))
    return delayMs * (0.8 + 0.4 * this.#clock.random())
  }

  over(): void {
    if (this.#now === undefined) return
    const { sinceMono, tries, told } = this.#now
    this.#now = undefined
    const afterMs = Math.round(this.#clock.mono() - sinceMono)
    if (told) this.#observer.log('info', 'consumer.recovered', { group: this.#group, afterMs, tries })
  }
}
