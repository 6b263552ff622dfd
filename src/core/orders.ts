import type { Control } from './control.ts'
import type { Delivery } from './delivery.ts'
import type { LineState } from './lane-state.ts'

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
  verdict(delivery: Pick<Delivery, 'id' | 'eventTimeMs'>, lineKey: string | null, nowMs: number): Verdict | null {
    if (this.#orders.size === 0) return null
    const own = this.deliveryVerdict(delivery.id, nowMs)
    if (own !== null || lineKey === null) return own
    return this.lineVerdict(lineKey, delivery.eventTimeMs, nowMs)
  }

  deliveryVerdict(deliveryId: string, nowMs: number): Verdict | null {
    if (this.#orders.size === 0) return null
    const order = this.#inForce('delivery', deliveryId, nowMs)
    return order?.order === 'cancel' ? verdictOf(order) : null
  }

  lineVerdict(lineKey: string, eventTimeMs: number, nowMs: number): Verdict | null {
    if (this.#orders.size === 0) return null
    const order = this.#inForce('line', lineKey, nowMs)
    if (order?.order === 'cancel') return eventTimeMs <= order.atMs ? verdictOf(order) : null
    // A release takes the place of an earlier cancel; that still holds for what was before it.
    const { cancelledMs, cancelReason } = order?.args ?? {}
    if (order === null || typeof cancelledMs !== 'number' || eventTimeMs > cancelledMs) return null
    return verdictOf({ ...order, ...(typeof cancelReason === 'string' ? { reason: cancelReason } : {}) })
  }

  /**
   * Has an operator let this stopped or blocked line go on? An order that names the head it is about (`args.head`) holds
   * for that head only, whatever the clocks say; one that names none holds if it was given after the line began to stand.
   * A line goes on whose head is cancelled, alone or with the line: of that the head's own time decides, as it does for
   * its settlement, so that a process whose clock is behind does not let a later head go.
   */
  released(state: LineState, nowMs: number): boolean {
    if (this.#orders.size === 0) return false
    if (state.head !== null && this.deliveryVerdict(state.head, nowMs) !== null) return true
    const order = this.#inForce('line', state.line, nowMs)
    if (order === null || (order.order !== 'resume' && order.order !== 'cancel')) return false
    const { headTimeMs } = state
    if (order.order === 'cancel' && headTimeMs !== undefined) return headTimeMs <= order.atMs
    const head = order.args?.head
    if (order.order === 'resume' && head !== undefined) return state.head === head
    return order.atMs >= state.sinceMs
  }

  #inForce(kind: Control['kind'], target: string, nowMs: number): Control | null {
    const order = this.#orders.get(`${kind}:${target}`)
    return order === undefined || ended(order, nowMs) ? null : order
  }
}

export function ended(order: Pick<Control, 'untilMs'>, nowMs: number): boolean {
  return order.untilMs !== undefined && order.untilMs <= nowMs
}

function verdictOf(order: Control): Verdict {
  const reason = order.reason ?? `by ${order.by}`
  return { t: order.args?.to === 'dead' ? 'dead' : 'cancelled', reason }
}
