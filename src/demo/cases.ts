import type { Attempt } from '../core/attempt.ts'
import { patternMatches } from '../core/match-index.ts'
import type { DeadSeen, DeliverySeen, EventSeen, Evidence, SubscriptionSeen, TierMove } from './evidence.ts'
import type { Request } from './journal.ts'

/**
 * What became of a delivery. `unmatched`: its subscription was disabled before the event was routed; `held`: routed, but
 * not made, since the subscription was disabled meanwhile; it still stands in Kafka. `lost`: none of all this.
 */
export type Fate = 'delivered' | 'dead' | 'cancelled' | 'unmatched' | 'held' | 'lost'

/** One event for one subscription that wants it, and everything that is known of it. */
export interface Case {
  readonly event: EventSeen
  readonly subscription: SubscriptionSeen
  readonly deliveries: readonly DeliverySeen[]
  /** In log order. */
  readonly attempts: readonly Attempt[]
  /** In the order of arrival. */
  readonly requests: readonly Request[]
  readonly moves: readonly TierMove[]
  readonly dead: readonly DeadSeen[]
  readonly fate: Fate
}

export interface Cases {
  readonly cases: readonly Case[]
  /** What belongs to no case, in words. */
  readonly strangers: readonly string[]
}

/** Puts the evidence together, one case per delivery that there should be. Events keep their log order. */
export function collectCases(evidence: Evidence): Cases {
  const strangers: string[] = []
  const pairs = new Map<string, { event: EventSeen; subscription: SubscriptionSeen; deliveries: DeliverySeen[] }>()
  for (const event of evidence.events) {
    for (const subscription of evidence.subscriptions) {
      if (!subscription.types.some((pattern) => patternMatches(pattern, event.type))) continue
      pairs.set(pairKey(event.id, subscription.id), { event, subscription, deliveries: [] })
    }
  }
  for (const delivery of evidence.deliveries) {
    const pair = pairs.get(pairKey(delivery.eventId, delivery.subscriptionId))
    if (pair !== undefined) pair.deliveries.push(delivery)
    else strangers.push(`delivery ${delivery.id}: event ${delivery.eventId} is nothing for ${delivery.subscriptionId}`)
  }
  const attempts = groupBy(evidence.attempts, ({ deliveryId }) => deliveryId)
  const requests = groupBy(
    evidence.requests.toSorted((a, b) => a.number - b.number),
    ({ deliveryId }) => deliveryId,
  )
  const moves = groupBy(evidence.tierMoves, ({ deliveryId }) => deliveryId)
  const dead = groupBy(evidence.dead, ({ deliveryId }) => deliveryId)

  const known = new Set<string>()
  const cases = [...pairs.values()].map((pair): Case => {
    const ids = [...new Set(pair.deliveries.map(({ id }) => id))]
    for (const id of ids) known.add(id)
    const of = <T>(groups: ReadonlyMap<string, readonly T[]>) => ids.flatMap((id) => groups.get(id) ?? [])
    const found = { attempts: of(attempts), requests: of(requests), moves: of(moves), dead: of(dead) }
    return { ...pair, ...found, fate: fateOf({ ...pair, ...found }, evidence.parked) }
  })
  for (const [what, groups] of Object.entries({ attempts, requests, moves, dead })) {
    for (const id of groups.keys()) if (!known.has(id)) strangers.push(`${what} of ${id || 'no id'}: no such delivery`)
  }
  return { cases, strangers }
}

function fateOf({ subscription, deliveries, attempts, moves }: Omit<Case, 'fate'>, parked: ReadonlySet<string>): Fate {
  for (const { settlement } of attempts) {
    if (settlement === 'done') return 'delivered'
    if (settlement === 'dead' || settlement === 'cancelled') return settlement
  }
  if (subscription.status !== 'disabled') return 'lost'
  if (deliveries.length === 0) return 'unmatched'
  const waits = deliveries.some(({ id, done }) => parked.has(id) || !done) || moves.some(({ done }) => !done)
  return waits ? 'held' : 'lost'
}

/**
 * Requests whose answer we saw. One of an attempt that ended without an answer (time-out, reset) may reach the endpoint
 * at any later time, after the next attempt too: nobody can prevent that, so it says nothing about order.
 */
export function answeredRequests({ attempts, requests }: Case): readonly Request[] {
  const unanswered = new Set(attempts.filter(isUnanswered).map(({ attempt }) => attempt))
  return unanswered.size === 0 ? requests : requests.filter(({ attempt }) => !unanswered.has(attempt ?? 0))
}

/** A POST was made, and no answer came. */
export function isUnanswered({ outcome, status }: Attempt): boolean {
  return outcome !== null && status === null
}

/** For people: which event for whom. */
export function caseName({ event, subscription }: Case): string {
  return `event ${event.id} (${event.type}) for ${subscription.id}`
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}

export function groupBy<T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

function pairKey(eventId: string, subscriptionId: string): string {
  return `${eventId} ${subscriptionId}`
}
