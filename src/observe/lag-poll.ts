import { messageOf } from '../core/error.ts'
import type { Lag } from '../core/vitals.ts'
import type { Clock, Observer } from '../ports.ts'

/** Asks for the lag from time to time: it costs requests to the broker, so a scrape only ever sees the last answer. */
export class LagPoll {
  readonly #ask: () => Promise<readonly Lag[]>
  readonly #clock: Clock
  readonly #observer: Observer
  readonly #everyMs: number
  #cancel: () => void = () => {}
  #stopped = false
  #failing = false
  /** The last answer; empty until there is one, and after a failure: an old lag is a lie. */
  latest: readonly Lag[] = []

  constructor(ask: () => Promise<readonly Lag[]>, deps: { clock: Clock; observer: Observer; everyMs: number }) {
    this.#ask = ask
    this.#clock = deps.clock
    this.#observer = deps.observer
    this.#everyMs = deps.everyMs
    void this.#poll()
  }

  stop(): void {
    this.#stopped = true
    this.#cancel()
  }

  async #poll(): Promise<void> {
    try {
      const answer = await this.#ask()
      if (this.#stopped) return
      this.latest = answer
      this.#failing = false
    } catch (error) {
      if (this.#stopped) return
      this.latest = []
      if (!this.#failing) this.#observer.log('warn', 'lag.unknown', { error: messageOf(error) })
      this.#failing = true
    }
    this.#cancel = this.#clock.after(this.#everyMs, () => void this.#poll())
  }
}
