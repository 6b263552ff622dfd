import { Circuit, type CircuitPolicy } from '../core/circuit.ts'
import type { CircuitMark } from '../core/lane-state.ts'
import type { FailureClass, Reply } from '../core/outcome.ts'
import type { Clock, Observer } from '../ports.ts'

export interface Change {
  readonly circuit: string
  readonly mark: CircuitMark | null
}

const unchanged: readonly Change[] = []

export interface CircuitsDeps {
  readonly clock: Clock
  readonly observer: Observer
  readonly policy: CircuitPolicy
  /** The circuit closed, or its time is over and one probe may go: whoever waits for it should be asked again. */
  changed(circuit: string, closed: boolean): void
  /** It opened, again perhaps: every lane in which something waits for it writes that down. */
  opened(circuit: string): void
}

/**
 * Circuits of subscriptions and of origins. A subscription's opens on anything retryable; an origin's only when the host
 * itself can't be reached, so that one bad path does not stop its neighbours, and a thousand subscriptions to one dead
 * host are one circuit.
 */
export class Circuits {
  readonly #deps: CircuitsDeps
  readonly #circuits = new Map<string, Circuit>()
  readonly #timers = new Map<string, () => void>()

  constructor(deps: CircuitsDeps) {
    this.#deps = deps
  }

  allows(subscriptionId: string, origin: string): boolean {
    if (this.#circuits.size === 0) return true
    const now = this.#deps.clock.now()
    return (
      this.#circuits.get(subscriptionKey(subscriptionId))?.allows(now) !== false &&
      this.#circuits.get(originKey(origin))?.allows(now) !== false
    )
  }

  started(subscriptionId: string, origin: string): void {
    if (this.#circuits.size === 0) return
    this.#circuits.get(subscriptionKey(subscriptionId))?.started()
    this.#circuits.get(originKey(origin))?.started()
  }

  /** Returns what changed, to be written down: a mark, or null for a circuit that closed. */
  ended(subscriptionId: string, origin: string, reply: Reply): readonly Change[] {
    // A healthy world has no circuits, and an answer below 500 makes none.
    if (this.#circuits.size === 0 && reply.t === 'response' && subscriptionVerdict(reply) === 'ok') return unchanged
    const changes: Change[] = []
    for (const [key, verdict] of [
      [subscriptionKey(subscriptionId), subscriptionVerdict(reply)],
      [originKey(origin), originVerdict(reply)],
    ] as const) {
      const known = this.#circuits.get(key)
      if (verdict === 'undecided') {
        known?.undecided()
        if (known?.state.t === 'half-open') this.#offerAgain(key, known)
      } else if (verdict === 'ok' && known === undefined) continue
      else {
        const circuit = known ?? new Circuit(this.#deps.policy)
        if (known === undefined) this.#circuits.set(key, circuit)
        if (circuit.ended(verdict === 'ok', this.#deps.clock.now(), this.#deps.clock.random())) {
          changes.push({ circuit: key, mark: this.#changed(key, circuit) })
        }
        if (circuit.idle) this.#circuits.delete(key)
      }
    }
    return changes
  }

  /** What is to be written down of it; null: it is not open. */
  mark(key: string): CircuitMark | null {
    const state = this.#circuits.get(key)?.state
    if (state?.t !== 'open') return null
    return { v: 1, kind: 'circuit', circuit: key, untilMs: state.untilMs, openings: state.openings }
  }

  restore(mark: CircuitMark): void {
    const circuit = this.#circuits.get(mark.circuit) ?? new Circuit(this.#deps.policy)
    this.#circuits.set(mark.circuit, circuit)
    circuit.restore(mark.untilMs, mark.openings)
    this.#arm(mark.circuit, circuit)
  }

  get open(): number {
    return this.openOf('sub') + this.openOf('origin')
  }

  openOf(scope: 'sub' | 'origin'): number {
    let open = 0
    for (const [key, circuit] of this.#circuits) if (circuit.state.t !== 'closed' && key.startsWith(`${scope} `)) open++
    return open
  }

  stop(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  #changed(key: string, circuit: Circuit): CircuitMark | null {
    const { state } = circuit
    const { observer } = this.#deps
    if (state.t === 'open') {
      const { untilMs, openings } = state
      observer.log('warn', 'circuit.opened', { circuit: key, untilMs, openings })
      observer.count('circuit_opened', 1, { scope: key.slice(0, key.indexOf(' ')) })
      this.#arm(key, circuit)
      this.#deps.clock.after(0, () => this.#deps.opened(key))
      return this.mark(key)
    }
    observer.log('info', 'circuit.closed', { circuit: key })
    this.#timers.get(key)?.()
    this.#timers.delete(key)
    this.#deps.clock.after(0, () => this.#deps.changed(key, true))
    return null
  }

  /** The probe said nothing, and its lane may be another's by now: somebody else's work may be the next one. */
  #offerAgain(key: string, circuit: Circuit): void {
    this.#timer(key, againMs, () => {
      if (circuit.state.t === 'half-open' && !circuit.state.probing) this.#deps.changed(key, false)
    })
  }

  #arm(key: string, circuit: Circuit): void {
    const { state } = circuit
    if (state.t !== 'open') return
    const { clock } = this.#deps
    this.#timer(key, Math.max(0, state.untilMs - clock.now()), () => {
      // The wall clock may have been set back.
      if (circuit.allows(clock.now())) this.#deps.changed(key, false)
      else this.#arm(key, circuit)
    })
  }

  /** One per circuit: a new one takes the place of the old. */
  #timer(key: string, ms: number, fn: () => void): void {
    this.#timers.get(key)?.()
    const cancel = this.#deps.clock.after(ms, () => {
      this.#timers.delete(key)
      fn()
    })
    this.#timers.set(key, cancel)
  }
}

/** Longer than a lane waits before it offers an interrupted work again. */
const againMs = 250

export function subscriptionKey(id: string): string {
  return `sub ${id}`
}

export function originKey(origin: string): string {
  return `origin ${origin}`
}

/** Nothing was asked of the endpoint. */
const oursAlone: ReadonlySet<FailureClass> = new Set(['blocked', 'secret', 'body', 'local'])

type Verdict = 'ok' | 'failed' | 'undecided'

function subscriptionVerdict(reply: Reply): Verdict {
  if (reply.t === 'interrupted') return 'undecided'
  if (reply.t === 'failure') return oursAlone.has(reply.class) ? 'undecided' : 'failed'
  // 429 is an answer of a living endpoint: Retry-After and the schedule deal with it.
  return reply.status >= 500 || reply.status === 408 ? 'failed' : 'ok'
}

function originVerdict(reply: Reply): Verdict {
  if (reply.t === 'response') return 'ok'
  // The token's server is another host.
  if (reply.t === 'failure' && reply.class === 'auth') return 'undecided'
  return subscriptionVerdict(reply)
}
