import type { Clock, Observer } from '../ports.ts'

interface Away {
  readonly sinceMono: number
  lastMono: number
  tries: number
}

/** Nobody has tried for so long: whether it is away still is not known, and what fails next is news again. */
const staleMs = 60_000

const remedy =
  'Check that it is up and reachable from here under this address, and kafka.ssl where it wants TLS; it is tried again and again.'

/**
 * Which brokers can be connected to. All connections of a client share one: an outage is seen by dozens of them, several times
 * a second, and is told once when it begins and once when it is over.
 */
export class Reach {
  readonly #clock: Clock
  readonly #observer: Observer
  readonly #away = new Map<string, Away>()

  constructor(clock: Clock, observer: Observer) {
    this.#clock = clock
    this.#observer = observer
  }

  failed(broker: string, reason: string): void {
    const nowMono = this.#clock.mono()
    const known = this.#away.get(broker)
    if (known !== undefined && nowMono - known.lastMono <= staleMs) {
      known.lastMono = nowMono
      known.tries++
      return
    }
    this.#away.set(broker, { sinceMono: nowMono, lastMono: nowMono, tries: 1 })
    this.#observer.log('warn', 'broker.unreachable', { broker, reason, remedy })
  }

  connected(broker: string): void {
    const known = this.#away.get(broker)
    if (known === undefined) return
    this.#away.delete(broker)
    const afterMs = Math.round(this.#clock.mono() - known.sinceMono)
    this.#observer.log('info', 'broker.reached', { broker, afterMs, tries: known.tries })
  }
}
