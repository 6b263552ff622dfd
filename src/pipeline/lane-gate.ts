import { type CircuitMark, laneStateKey } from '../core/lane-state.ts'
import type { Line } from '../core/line.ts'
import type { Verdict } from '../core/orders.ts'
import type { Reply } from '../core/outcome.ts'
import type { Subscription } from '../core/subscription.ts'
import { originKey, subscriptionKey } from './circuits.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Ledger } from './ledger.ts'
import { lineForOrders, type Work } from './work.ts'

/** Whether a lane's works may start now: subscription, operators' orders, circuits. Writes down which circuits are open. */
export class LaneGate {
  readonly #world: LaneWorld
  readonly #ledger: Ledger
  /** Circuits this lane has written down. */
  readonly #marked: Set<string>

  constructor(world: LaneWorld, ledger: Ledger, marks: readonly CircuitMark[]) {
    this.#world = world
    this.#ledger = ledger
    this.#marked = new Set(marks.map(({ circuit }) => circuit))
    for (const mark of marks) world.circuits.restore(mark)
  }

  startable(subscription: Subscription): boolean {
    const { circuits, clock, orders, originOf } = this.#world
    if (subscription.status !== 'active' || orders.subscriptionPaused(subscription.id, clock.now())) return false
    const origin = originOf(subscription.url)
    if (circuits.allows(subscription.id, origin)) return true
    for (const key of [subscriptionKey(subscription.id), originKey(origin)]) if (!this.#marked.has(key)) this.note(key)
    return false
  }

  /** Writes down that the circuit is open, if it is: another lane's POST may have opened it. */
  note(circuit: string): void {
    const mark = this.#world.circuits.mark(circuit)
    if (mark !== null) this.#mark(circuit, mark)
  }

  /** Its events are not kept while it is disabled: what comes up is cancelled. */
  drops({ status, whileDisabled }: Subscription): boolean {
    return status === 'disabled' && whileDisabled === 'drop'
  }

  /**
   * May this work of the line come out, or, where none is named yet, any: to be attempted, or to be settled without
   * (deleted subscription, cancelled line or delivery)? Must agree with what `begin` does, or the line spins.
   */
  runs(line: Line<Work>, work: Work | null): boolean {
    const subscription = this.#world.subscription(line.subscriptionId)
    if (subscription === undefined || this.drops(subscription) || this.startable(subscription)) return true
    if (work !== null) return this.verdict(work) !== null
    return this.#world.orders.lineVerdict(line.key, 0, this.#world.clock.now()) !== null
  }

  /** What an operator has ordered about it; null: nothing. */
  verdict(work: Work): Verdict | null {
    const { orders, clock } = this.#world
    if (orders.size === 0) return null
    const subscription = this.#world.subscription(work.delivery.subscriptionId)
    return orders.verdict(work.delivery, lineForOrders(work, subscription), clock.now())
  }

  /** Has an operator ordered since it began that it must not be sent? Circuits are not asked: it may be what tries one. */
  forbids(work: Work): boolean {
    const { orders, clock } = this.#world
    if (orders.size === 0) return false
    return orders.subscriptionPaused(work.delivery.subscriptionId, clock.now()) || this.verdict(work) !== null
  }

  started(subscription: Subscription): void {
    this.#world.circuits.started(subscription.id, this.#world.originOf(subscription.url))
  }

  /** A POST ended. What it says of the endpoint holds, whoever owns the lane now; only an owner writes it down. */
  ended(work: Work, url: string, reply: Reply, owner: boolean): void {
    const { circuits, originOf } = this.#world
    for (const { circuit, mark } of circuits.ended(work.delivery.subscriptionId, originOf(url), reply)) {
      if (owner) this.#mark(circuit, mark)
    }
  }

  closed(circuit: string): void {
    this.#mark(circuit, null)
  }

  concerns(circuit: string, subscriptionId: string): boolean {
    if (circuit === subscriptionKey(subscriptionId)) return true
    const subscription = this.#world.subscription(subscriptionId)
    return subscription !== undefined && circuit === originKey(this.#world.originOf(subscription.url))
  }

  #mark(circuit: string, mark: CircuitMark | null): void {
    if (mark === null && !this.#marked.delete(circuit)) return
    if (mark !== null) this.#marked.add(circuit)
    this.#ledger.state(mark === null ? `circuit:${circuit}` : laneStateKey(mark), mark)
  }
}
