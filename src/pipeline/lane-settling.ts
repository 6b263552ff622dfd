import type { Verdict } from '../core/orders.ts'
import type { Outcome } from '../core/outcome.ts'
import type { InRecord } from '../core/record.ts'
import { rejectedRecord, undecodableHeader } from '../core/rejected.ts'
import { policyFor } from '../core/retry-policy.ts'
import { type Settlement, settle } from '../core/settle.ts'
import type { Subscription } from '../core/subscription.ts'
import { type AttemptFacts, toAttempt, toDead, toTier } from './lane-records.ts'
import { reportSettlement } from './lane-report.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Ledger } from './ledger.ts'
import { lineForOrders, lineKeyIn, type Work } from './work.ts'

export type Settled = Exclude<Settlement, { t: 'released' }>

/** Decides what follows from an attempt and writes it into the ledger; marking the source done is the lane's next step. */
export class Settling {
  readonly #world: LaneWorld
  readonly #ledger: Ledger
  readonly #partition: number

  constructor(world: LaneWorld, ledger: Ledger, partition: number) {
    this.#world = world
    this.#ledger = ledger
    this.#partition = partition
  }

  decide(work: Work, attempt: number, outcome: Outcome, subscription: Subscription | undefined): Settlement {
    const { clock, ladder, deadCredit, orders } = this.#world
    const { subscriptionId } = work.delivery
    const policy = policyFor(this.#world.policy, subscription?.retry)
    const input = { outcome, attempt, policy, ladder, nowMs: clock.now(), random: clock.random() }
    const settlement = settle(input)
    if (settlement.t === 'done') deadCredit.earn(subscriptionId)
    if (settlement.t === 'scheduled' || settlement.t === 'dead') {
      // Cancelled while its POST was open: there is no other attempt, and its line goes on.
      const verdict = orders.verdict(work.delivery, lineForOrders(work, subscription), clock.now())
      if (verdict !== null) return settledBy(verdict)
    }
    if (settlement.t !== 'dead' || settlement.reason !== 'exhausted') return settlement
    // An outage must not flood `dead`: without credit the delivery waits on, for as many attempts again at the most.
    if (attempt >= 2 * policy.maxAttempts || deadCredit.spend(subscriptionId)) return settlement
    return settle({ ...input, policy: { ...policy, maxAttempts: Number.POSITIVE_INFINITY } })
  }

  /** The move, if any, and the attempt. */
  write(work: Work, settlement: Settled, facts: AttemptFacts): void {
    const { topics, clock } = this.#world
    const lineKey = work.line?.ordered === true ? Buffer.from(work.line.key) : null
    if (settlement.t === 'scheduled') {
      const change = { attempts: facts.attempt, dueMs: settlement.dueMs, error: settlement.error }
      this.#ledger.move(toTier(topics.tiers[settlement.tier] as string, this.#partition, work, lineKey, change))
    } else if (settlement.t === 'dead') {
      const { reason, error } = settlement
      const change = { attempts: facts.attempt, reason, error, atMs: Math.floor(clock.now()) }
      this.#ledger.move(toDead(topics.dead, this.#partition, work, lineKey, change))
      const { delivery } = work
      this.#ledger.afterCommit(() => this.#world.dead({ delivery, ...change }))
    }
    this.#ledger.append(toAttempt(topics.attempts, this.#partition, work, facts, settlement))
    reportSettlement(this.#world, this.#partition, work, settlement, facts)
  }

  /** On to another tier with the same attempt count and due time. */
  hop(work: Work, tier: number): void {
    const { attempts, dueMs, lastError: error } = work.delivery
    const lineKey = lineKeyIn(work)
    const change = { attempts, dueMs: dueMs ?? 0, error }
    const topic = this.#world.topics.tiers[tier] as string
    this.#ledger.move(toTier(topic, this.#partition, work, lineKey === null ? null : Buffer.from(lineKey), change))
  }

  /** Facts of a settlement without a POST; `more`: numbered as if it had been made. */
  unattempted(work: Work, more: 0 | 1): AttemptFacts {
    const attempt = Math.max(1, work.delivery.attempts + more)
    return { attempt, startedAtMs: this.#world.clock.now(), url: '', reply: null, outcome: null }
  }

  /** How its line goes on. An operator who sends a delivery to the dead letters wants the line to go on. */
  lineEnd(work: Work, settlement: Settled): 'final' | 'retry' | 'stop' {
    if (settlement.t === 'scheduled') return 'retry'
    if (settlement.t !== 'dead' || settlement.reason === 'operator') return 'final'
    return this.#world.subscription(work.delivery.subscriptionId)?.onDead === 'block' ? 'stop' : 'final'
  }

  /** A record of ours that can't be read: kept in `rejected`, with the reason. */
  reject(topic: string, record: InRecord, reason: string): void {
    const at = { topic, partition: this.#partition }
    const undecodable = record.headers[undecodableHeader]?.toString()
    const why =
      undecodable === undefined ? { code: 'delivery.unreadable', reason } : { code: 'undecodable', reason: undecodable }
    const parts = rejectedRecord(record, at, why)
    const partition = this.#partition % this.#world.rejectedPartitions
    this.#ledger.move({ topic: this.#world.topics.rejected, partition, ...parts })
    const remedy = 'It stands in the rejected topic. Only Hooktide may write to this topic: find out who else does.'
    const { offset } = record
    this.#world.observer.log('error', 'delivery.unreadable', { ...at, offset, reason: why.reason, remedy })
  }
}

export function settledBy({ t, reason }: Verdict): Settled {
  return t === 'dead' ? { t, reason: 'operator', error: reason } : { t, reason }
}
