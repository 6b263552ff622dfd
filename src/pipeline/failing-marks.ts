import { failedAgain, verdictOn } from '../core/failing.ts'
import { type FailingMark, laneStateKey } from '../core/lane-state.ts'
import type { Outcome, Reply } from '../core/outcome.ts'
import type { Subscription } from '../core/subscription.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Ledger } from './ledger.ts'

/**
 * Since when the subscriptions of a lane have failed without a success, written down in its transactions: it outlives
 * processes and goes with the lane. A subscription that is spread over lanes is judged by each for itself.
 */
export class FailingMarks {
  readonly #world: LaneWorld
  readonly #ledger: Ledger
  readonly #marks = new Map<string, { mark: FailingMark; writtenMs: number }>()

  constructor(world: LaneWorld, ledger: Ledger, marks: readonly FailingMark[]) {
    this.#world = world
    this.#ledger = ledger
    for (const mark of marks) {
      this.#marks.set(mark.subscriptionId, { mark, writtenMs: mark.lastMs })
      if (world.subscription(mark.subscriptionId) === undefined) this.#clear(mark.subscriptionId)
    }
  }

  *[Symbol.iterator](): Iterator<FailingMark> {
    for (const { mark } of this.#marks.values()) yield mark
  }

  ended(subscription: Subscription, outcome: Outcome, reply: Reply): void {
    const verdict = verdictOn(outcome, reply)
    if (verdict === 'ok') this.#clear(subscription.id)
    if (verdict !== 'failed' || subscription.status === 'disabled') return
    const { clock, failing } = this.#world
    const known = this.#marks.get(subscription.id) ?? null
    const nowMs = Math.floor(clock.now())
    const { mark, write, step } = failedAgain(known, subscription, nowMs, failing.policy)
    this.#marks.set(subscription.id, { mark, writtenMs: write ? nowMs : (known?.writtenMs ?? nowMs) })
    if (write) this.#ledger.state(laneStateKey(mark), mark)
    if (step !== 'none') {
      const error = outcome.t === 'delivered' || outcome.t === 'gone' ? '' : outcome.error
      failing.told(subscription, { disable: step === 'disable', sinceMs: mark.sinceMs, failures: mark.failures, error })
    }
  }

  #clear(subscriptionId: string): void {
    const known = this.#marks.get(subscriptionId)
    if (known === undefined) return
    this.#marks.delete(subscriptionId)
    this.#ledger.state(laneStateKey(known.mark), null)
  }
}
