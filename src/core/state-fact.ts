import type { Attempt } from './attempt.ts'
import { deadHeader, decodeDelivery, encodeOrigin } from './delivery.ts'
import type { InRecord, TopicPartition } from './record.ts'
import { ok, type Result } from './result.ts'
import type { DeliveryStatus } from './state-view.ts'

/** Topics that say where a delivery is; `attempts` says what was tried. */
export type StatePlace = 'deliveries' | 'tier' | 'parked' | 'dead'

/**
 * How far a record takes a delivery beyond the number of attempts it speaks of. A delivery with n attempts made goes
 * only from lower to higher: that is what makes the fold independent of the order in which topics are read.
 */
export const rank = { deliveries: 0, failed: 1, tier: 2, parked: 3, settled: 4, dead: 5 } as const

/** What one record says of one delivery. */
export interface Fact {
  readonly id: string
  readonly tenant: string
  readonly subscriptionId: string
  readonly eventId: string
  readonly eventType: string
  readonly sending: Sending
  /** Best: when it was written to `deliveries`. */
  readonly created: Created
  /** Null: an attempt, which knows nothing of it. */
  readonly event: EventFacts | null
}

/** One way of a delivery through the log: a redrive, a replay or a doubled event sends it once more, with another origin. */
export interface Sending {
  readonly origin: string
  /** Attempts made when the record was written; with `rank` and then time it says which record is the latest. */
  readonly n: number
  readonly rank: number
  readonly timeMs: number
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly status: DeliveryStatus
  readonly dueMs: number | null
  readonly error: string | null
  readonly deadReason: string | null
  /** POSTs made, as far as any record says. */
  readonly posts: number
  /** Number and HTTP status of the last attempt in the log; 0: none. */
  readonly postN: number
  readonly postStatus: number | null
}

export interface Created {
  readonly ms: number
  /** 0: from `deliveries`, 1: from an attempt, 2: from elsewhere. */
  readonly from: number
}

export interface EventFacts {
  readonly timeMs: number
  readonly orderingKey: string | null
  readonly contentType: string
  readonly bodyBytes: number
  readonly traceparent: string | null
}

const statusOf = { deliveries: 'queued', tier: 'scheduled', parked: 'parked', dead: 'dead' } as const

/** A record of `deliveries`, a tier, `parked` or `dead`. Not ok: it can't be read; lanes put such records into `rejected`. */
export function placeFact(place: StatePlace, at: TopicPartition, record: InRecord): Result<Fact> {
  const decoded = decodeDelivery(record)
  if (!decoded.ok) return decoded
  const d = decoded.value
  const reason = place === 'dead' ? (record.headers[deadHeader.reason]?.toString() ?? 'unknown') : null
  const sending: Sending = {
    origin: encodeOrigin(d.origin),
    n: d.attempts,
    rank: rank[place],
    timeMs: record.timestampMs,
    topic: at.topic,
    partition: at.partition,
    offset: record.offset,
    status: statusOf[place],
    // A head that hops without having been attempted is due at once.
    dueMs: place === 'tier' && d.dueMs !== 0 ? d.dueMs : null,
    error: d.lastError,
    deadReason: reason,
    // Settled by an operator, the record counts an attempt that was not made.
    posts: reason === 'operator' ? 0 : d.attempts,
    postN: 0,
    postStatus: null,
  }
  return ok({
    id: d.id,
    tenant: d.tenant,
    subscriptionId: d.subscriptionId,
    eventId: d.eventId,
    eventType: d.eventType,
    sending,
    created: { ms: record.timestampMs, from: place === 'deliveries' ? 0 : 2 },
    event: {
      timeMs: d.eventTimeMs,
      orderingKey: d.orderingKey,
      contentType: d.contentType,
      bodyBytes: d.body.length,
      traceparent: d.traceparent,
    },
  })
}

/** A record of `attempts`. Null: it settled nothing (`released`). */
export function attemptFact(at: TopicPartition, record: InRecord, attempt: Attempt): Fact | null {
  const { offset, timestampMs } = record
  const sending = attemptSending({ topic: at.topic, partition: at.partition, offset }, timestampMs, attempt)
  if (sending === null) return null
  const { deliveryId: id, tenant, subscriptionId, eventId, eventType, startedAtMs } = attempt
  return { id, tenant, subscriptionId, eventId, eventType, sending, created: { ms: startedAtMs, from: 1 }, event: null }
}

/** What an attempt alone says of its sending. `timeMs`: of its record. */
export function attemptSending(
  at: TopicPartition & { readonly offset: number },
  timeMs: number,
  attempt: Pick<Attempt, 'attempt' | 'settlement' | 'outcome' | 'status' | 'error' | 'dueMs' | 'origin'>,
): Sending | null {
  const { attempt: n, settlement, outcome } = attempt
  if (settlement === 'released') return null
  const posted = outcome !== null
  return {
    origin: attempt.origin,
    n,
    rank: settlement === 'scheduled' ? rank.failed : rank.settled,
    timeMs,
    topic: at.topic,
    partition: at.partition,
    offset: at.offset,
    status: settlement === 'done' ? 'delivered' : settlement,
    dueMs: attempt.dueMs,
    error: attempt.error,
    deadReason: settlement === 'dead' ? reasonOf(outcome) : null,
    posts: posted ? n : 0,
    postN: posted ? n : 0,
    postStatus: posted ? attempt.status : null,
  }
}

/** As the dead letter says it, which may not be read yet, or be gone. */
function reasonOf(outcome: Attempt['outcome']): string {
  if (outcome === null) return 'operator'
  return outcome === 'retryable' ? 'exhausted' : outcome
}
