import { HooktideError } from '../core/error.ts'

/**
 * Reading the log costs what it costs, whoever asks: only so many at a time, some more wait, the rest is refused, so that
 * curiosity does not take the machine from deliveries.
 */
export class ScanGate {
  readonly #most: number
  readonly #mostWaiting: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(most = 4, mostWaiting = 32) {
    this.#most = most
    this.#mostWaiting = mostWaiting
  }

  /** Rejects `busy` when too many wait already. */
  async pass<T>(run: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#most) {
      if (this.#waiting.length >= this.#mostWaiting) {
        throw new HooktideError('busy', 'too many readings of the log are under way', {
          remedy: 'Ask again in a moment.',
        })
      }
      // Who leaves hands its place over, so that nobody who comes meanwhile takes it.
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else this.#running++
    try {
      return await run()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
