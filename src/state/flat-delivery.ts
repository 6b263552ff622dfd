import type { Created, EventFacts, Sending } from '../core/state-fact.ts'
import { currentSending, type DeliveryRow } from '../core/state-row.ts'
import { type DeliveryStatus, type DeliveryView, deliveryStatuses } from '../core/state-view.ts'
import type { FlatDelivery } from './tables.ts'

/** As it stands in tables: the order of `deliveryStatuses` must not change. */
export function statusNumber(status: DeliveryStatus): number {
  return deliveryStatuses.indexOf(status)
}

export function flatDelivery(no: number, row: DeliveryRow): FlatDelivery {
  const now = currentSending(row)
  const { created, event, sendings } = row
  return {
    no,
    id: row.id,
    tenant: row.tenant,
    subscription: row.subscriptionId,
    event: row.eventId,
    type: row.eventType,
    created_ms: created.ms,
    created_from: created.from,
    event_ms: event?.timeMs ?? null,
    ordering_key: event?.orderingKey ?? null,
    content_type: event?.contentType ?? null,
    bytes: event?.bodyBytes ?? null,
    traceparent: event?.traceparent ?? null,
    status: statusNumber(now.status),
    posts: now.posts,
    due_ms: now.dueMs,
    error: now.error,
    post_status: now.postStatus,
    reason: now.deadReason,
    updated_ms: now.timeMs,
    topic: now.topic,
    part: now.partition,
    off: now.offset,
    n: now.n,
    rank: now.rank,
    post_n: now.postN,
    origin: now.origin,
    sendings: sendings.length,
    others: sendings.length === 1 ? null : JSON.stringify(sendings.filter((s) => s !== now)),
  }
}

export function deliveryRow(flat: FlatDelivery): DeliveryRow {
  const created: Created = { ms: flat.created_ms, from: flat.created_from }
  const now: Sending = {
    origin: flat.origin,
    n: flat.n,
    rank: flat.rank,
    timeMs: flat.updated_ms,
    topic: flat.topic,
    partition: flat.part,
    offset: flat.off,
    status: deliveryStatuses[flat.status] as DeliveryStatus,
    dueMs: flat.due_ms,
    error: flat.error,
    deadReason: flat.reason,
    posts: flat.posts,
    postN: flat.post_n,
    postStatus: flat.post_status,
  }
  const others = flat.others === null ? [] : (JSON.parse(flat.others) as Sending[])
  return {
    id: flat.id,
    tenant: flat.tenant,
    subscriptionId: flat.subscription,
    eventId: flat.event,
    eventType: flat.type,
    created,
    event: eventOf(flat),
    sendings: others.length === 0 ? [now] : [...others, now].sort((a, b) => (a.origin < b.origin ? -1 : 1)),
  }
}

function eventOf({ event_ms, ordering_key, content_type, bytes, traceparent }: FlatDelivery): EventFacts | null {
  if (event_ms === null || content_type === null || bytes === null) return null
  return { timeMs: event_ms, orderingKey: ordering_key, contentType: content_type, bodyBytes: bytes, traceparent }
}

/** As `viewOf`, of a row as it was read. */
export function deliveryView(flat: FlatDelivery): DeliveryView {
  return {
    id: flat.id,
    tenant: flat.tenant,
    subscriptionId: flat.subscription,
    eventId: flat.event,
    eventType: flat.type,
    status: deliveryStatuses[flat.status] as DeliveryStatus,
    attempts: flat.posts,
    dueMs: flat.due_ms,
    lastError: flat.error,
    lastStatus: flat.post_status,
    deadReason: flat.reason,
    createdMs: flat.created_ms,
    updatedMs: flat.updated_ms,
    eventTimeMs: flat.event_ms,
    orderingKey: flat.ordering_key,
    contentType: flat.content_type,
    bodyBytes: flat.bytes,
    traceparent: flat.traceparent,
    place: { topic: flat.topic, partition: flat.part, offset: flat.off },
    sendings: flat.sendings,
    origin: flat.origin,
  }
}
