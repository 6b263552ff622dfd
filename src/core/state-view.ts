import type { Attempt } from './attempt.ts'
import type { Control } from './control.ts'
import type { TopicPartition } from './record.ts'

/**
 * What a query of the delivery state answers with. All of it follows from the log alone; "in flight" is not in the log,
 * so what is being posted counts as where it came from (`queued`, `scheduled` or `parked`).
 */
export const deliveryStatuses = ['queued', 'scheduled', 'parked', 'delivered', 'dead', 'cancelled'] as const

export type DeliveryStatus = (typeof deliveryStatuses)[number]

/** Statuses after which nothing happens any more, unless it is sent again. */
export function isFinal(status: DeliveryStatus): boolean {
  return status === 'delivered' || status === 'dead' || status === 'cancelled'
}

export interface DeliveryView {
  readonly id: string
  readonly tenant: string
  readonly subscriptionId: string
  readonly eventId: string
  readonly eventType: string
  readonly status: DeliveryStatus
  /** POSTs made, of the last sending if it was sent again (redrive, replay). */
  readonly attempts: number
  /** When the next attempt is due (epoch ms); null: at once, or none. */
  readonly dueMs: number | null
  /** The last failure in one short line; null when the last attempt was delivered or there was none. */
  readonly lastError: string | null
  /** HTTP status of the last attempt; null: there was none. */
  readonly lastStatus: number | null
  /** Why it is dead (`exhausted`, `rejected`, `gone`, `blocked`, `operator`, …). */
  readonly deadReason: string | null
  /** When it was written to `deliveries` first (epoch ms); where the log has forgotten that, its first attempt. What lists are sorted by. */
  readonly createdMs: number
  /** Time (epoch ms) of the record that made the status what it is. */
  readonly updatedMs: number
  /** When the event was produced (epoch ms); null: only attempts are left in the log. So are the next four. */
  readonly eventTimeMs: number | null
  readonly orderingKey: string | null
  readonly contentType: string | null
  readonly bodyBytes: number | null
  readonly traceparent: string | null
  /** Where the record is that made the status what it is: the body is there, but for `attempts`. */
  readonly place: TopicPartition & { readonly offset: number }
  /** How often it was sent: 1, and one more for each redrive, replay or doubled event. */
  readonly sendings: number
  /** `encodeOrigin` of the sending that counts. */
  readonly origin: string
}

/** One settled attempt as the `attempts` topic has it, and where. */
export type AttemptView = Omit<Attempt, 'v' | 'subscriptionId' | 'tenant' | 'eventId' | 'eventType'> & {
  /** Offset in partition `lane` of `attempts`. */
  readonly offset: number
}

export interface DeliveryDetail extends DeliveryView {
  /** Oldest first; at most the 200 newest. */
  readonly log: readonly AttemptView[]
}

/** Everything given must hold. Texts are compared as they are. */
export interface DeliveryQuery {
  /** A caller that is bound to a tenant always gives it: others' deliveries are then as if they were not there. */
  readonly tenant?: string
  readonly deliveryId?: string
  readonly eventId?: string
  readonly subscriptionId?: string
  readonly status?: DeliveryStatus
  readonly type?: string
  /** `createdMs` from (inclusive) and to (exclusive). */
  readonly fromMs?: number
  readonly toMs?: number
}

export interface StatePage {
  /** 1 to 1000. */
  readonly limit: number
  /** `nextCursor` of the page before; null: the first page. Stays good across rebuilds. A foreign text rejects `usage`. */
  readonly cursor: string | null
}

export interface Paged<T> {
  readonly items: readonly T[]
  /** Null: there is nothing behind these. */
  readonly nextCursor: string | null
}

export interface SubscriptionHealth {
  readonly subscriptionId: string
  readonly tenant: string
  /** Deliveries by status. */
  readonly deliveries: StatusCounts
  /** Attempts in the log that were delivered, and that were not; settled without a POST counts as neither. */
  readonly succeeded: number
  readonly failed: number
  readonly lastSuccessMs: number | null
  readonly lastFailureMs: number | null
  readonly lastError: string | null
  /** Failed attempts since the last success; of a subscription spread over lanes, the sum over those. */
  readonly consecutiveFailures: number
  /** Start of the first of those; null when there are none. */
  readonly failingSinceMs: number | null
}

export type StatusCounts = Readonly<Record<DeliveryStatus, number>>

/** How far a partition of the log is folded into the state. */
export interface StatePosition extends TopicPartition {
  /** Everything below is in the state. */
  readonly folded: number
  /** End of the partition when the projector last looked; 0 before it has. */
  readonly logEnd: number
  readonly logEndAtMs: number
}

/** An order or job of `control` that is in the log (the last of its target). */
export interface OrderView extends Control {
  readonly key: string
  readonly offset: number
}
