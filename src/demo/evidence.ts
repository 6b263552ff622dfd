import type { Attempt } from '../core/attempt.ts'
import type { Expectation } from './cast.ts'
import type { Request } from './journal.ts'

/** Everything the demo is judged by: what stands in Kafka's logs after the service has stopped, and what was received. */
export interface Evidence {
  /** Events produced and acknowledged. */
  readonly produced: number
  readonly maxAttempts: number
  /** In log order within a partition. */
  readonly events: readonly EventSeen[]
  readonly subscriptions: readonly SubscriptionSeen[]
  /** In log order within a partition. */
  readonly deliveries: readonly DeliverySeen[]
  /** In log order within a partition; all of a delivery stand in one. */
  readonly attempts: readonly Attempt[]
  readonly tierMoves: readonly TierMove[]
  readonly dead: readonly DeadSeen[]
  /** Ids of deliveries that stand in `parked`. */
  readonly parked: ReadonlySet<string>
  /** Reasons of what stands in `rejected`. */
  readonly rejected: readonly string[]
  /** Of each endpoint in the order of its answers; numbers are per endpoint. */
  readonly requests: readonly Request[]
}

export interface EventSeen {
  readonly id: string
  readonly type: string
  readonly key: string | null
  readonly partition: number
  readonly offset: number
  readonly timeMs: number
  readonly digest: string
}

export interface SubscriptionSeen {
  readonly id: string
  readonly types: readonly string[]
  readonly ordered: boolean
  readonly path: string
  readonly expect: Expectation
  /** What its last record says: `active`, `disabled`, … */
  readonly status: string
}

export interface DeliverySeen {
  readonly id: string
  readonly subscriptionId: string
  readonly eventId: string
  /** By what its group has committed. */
  readonly done: boolean
}

export interface TierMove {
  readonly tier: string
  readonly deliveryId: string
  /** POSTs made when it was moved. */
  readonly attempts: number
  readonly dueMs: number
  /** By what the tier's group has committed. */
  readonly done: boolean
}

export interface DeadSeen {
  readonly deliveryId: string
  readonly subscriptionId: string
  readonly reason: string
  readonly attempts: number
}
