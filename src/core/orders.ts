import type { Control } from './control.ts'
import type { Delivery } from './delivery.ts'

/** What an order says of a delivery that is about to be started. */
export interface Verdict {
  readonly t: 'cancelled' | 'dead'
  readonly reason: string
}

/**
 * The operators' orders in force, folded from the compacted `control` topic (the last order of a target counts, a
 * tombstone or `resume` takes it back). Every instance holds all of them, so all obey alike, after a restart too.
 */
export class Orders {
  readonly #orders = new Map<string, Control>()

  /** Returns whether anything changed. */
  apply(key: string, order: Control | null): boolean {
    if (order === null || order.kind === 'job') return this.#orders.delete(key)
    // A resume is kept for lines: a lane that is down now must release its line when it is back.
    if (order.order === 'resume' && order.kind !== 'line') return this.#orders.delete(key)
    this.#orders.set(key, order)
    return true
  }

  get size(): number {
    return this.#orders.size
  }

  /** Most promotions per second of a tier over all lanes; 0: paused; null: unbounded. Due times are kept meanwhile. */
  tierRate(tier: string, nowMs: number): number | null {
    const order = this.#inForce('tier', tier, nowMs)
    if (order === null) return null
    if (order.order === 'pause') return 0
    return order.order === 'throttle' ? (order.perSecond ?? null) : null
  }

  subscriptionPaused(id: string, nowMs: number): boolean {
    return this.#orders.size > 0 && this.#inForce('subscription', id, nowMs)?.order === 'pause'
  }

  /** Cancelled, or sent to the dead letters, by delivery or by line. A line's order holds for events from before it. */
  verdict(delivery: Delivery, lineKey: string | null, nowMs: number): Verdict | null {
    if (this.#orders.size === 0) return null
    const own = this.#inForce('delivery', delivery.id, nowMs)
    if (own?.order === 'cancel') return verdictOf(own)
    return lineKey === null ? null : this.lineVerdict(lineKey, delivery.eventTimeMs, nowMs)
  }

  lineVerdict(lineKey: string, eventTimeMs: number, nowMs: number): Verdict | null {
    if (this.#orders.size === 0) return null
    const order = this.#inForce('line', lineKey, nowMs)
    return order?.order === 'cancel' && eventTimeMs <= order.atMs ? verdictOf(order) : null
  }

  /** When an operator last let a stopped or blocked line go on (epoch ms); null: never. */
  lineReleasedMs(lineKey: string): number | null {
    const order = this.#orders.get(`line:${lineKey}`)
    return order !== undefined && (order.order === 'resume' || order.order === 'cancel') ? order.atMs : null
  }

  #inForce(kind: Control['kind'], target: string, nowMs: number): Control | null {
    const order = this.#orders.get(`${kind}:${target}`)
    return order === undefined || (order.untilMs !== undefined && order.untilMs <= nowMs) ? null : order
  }
}

function verdictOf(order: Control): Verdict {
  const reason = order.reason ?? `by ${order.by}`
  return { t: order.args?.to === 'dead' ? 'dead' : 'cancelled', reason }
}
