import type { Created, EventFacts, Fact, Sending } from './state-fact.ts'
import { isFinal } from './state-view.ts'

/** Everything the state keeps of one delivery but for its attempts. */
export interface DeliveryRow {
  readonly id: string
  readonly tenant: string
  readonly subscriptionId: string
  readonly eventId: string
  readonly eventType: string
  readonly created: Created
  readonly event: EventFacts | null
  /** By origin; never empty, nearly always one. */
  readonly sendings: readonly Sending[]
}

/**
 * The row after one more fact. Every part of it is a greatest or least of what the facts say, so the order of the facts
 * does not matter and a fact that comes twice changes nothing.
 */
export function foldFact(row: DeliveryRow | null, fact: Fact): DeliveryRow {
  if (row === null) {
    const { id, tenant, subscriptionId, eventId, eventType, created, event, sending } = fact
    return { id, tenant, subscriptionId, eventId, eventType, created, event, sendings: [sending] }
  }
  return {
    id: row.id,
    tenant: greater(row.tenant, fact.tenant),
    subscriptionId: greater(row.subscriptionId, fact.subscriptionId),
    eventId: greater(row.eventId, fact.eventId),
    eventType: greater(row.eventType, fact.eventType),
    created: firstCreated(row.created, fact.created),
    event: joinEvents(row.event, fact.event),
    sendings: withSending(row.sendings, fact.sending),
  }
}

function withSending(sendings: readonly Sending[], added: Sending): readonly Sending[] {
  const at = sendings.findIndex(({ origin }) => origin >= added.origin)
  const found = sendings[at]
  if (found === undefined) return [...sendings, added]
  if (found.origin !== added.origin) return sendings.toSpliced(at, 0, added)
  const joined = joinSendings(found, added)
  return sendings.length === 1 ? [joined] : sendings.with(at, joined)
}

function joinSendings(a: Sending, b: Sending): Sending {
  const latest = isLater(b, a) ? b : a
  const posted = lastPost(a, b)
  return {
    ...latest,
    posts: Math.max(a.posts, b.posts),
    postN: posted.postN,
    postStatus: posted.postStatus,
  }
}

function isLater(a: Sending, b: Sending): boolean {
  if (a.n !== b.n) return a.n > b.n
  if (a.rank !== b.rank) return a.rank > b.rank
  if (a.timeMs !== b.timeMs) return a.timeMs > b.timeMs
  if (a.offset !== b.offset) return a.offset > b.offset
  return a.topic > b.topic
}

/** Of two with the same number the greater status: there are none, but the fold must not depend on that. */
function lastPost(a: Sending, b: Sending): Sending {
  if (a.postN !== b.postN) return a.postN > b.postN ? a : b
  return (b.postStatus ?? -1) > (a.postStatus ?? -1) ? b : a
}

function firstCreated(a: Created, b: Created): Created {
  if (a.from !== b.from) return a.from < b.from ? a : b
  return b.ms < a.ms ? b : a
}

function joinEvents(a: EventFacts | null, b: EventFacts | null): EventFacts | null {
  if (a === null || b === null) return a ?? b
  if (sameEvent(a, b)) return a
  return {
    timeMs: Math.max(a.timeMs, b.timeMs),
    orderingKey: greatest(a.orderingKey, b.orderingKey),
    contentType: greater(a.contentType, b.contentType),
    bodyBytes: Math.max(a.bodyBytes, b.bodyBytes),
    traceparent: greatest(a.traceparent, b.traceparent),
  }
}

function sameEvent(a: EventFacts, b: EventFacts): boolean {
  return (
    a.timeMs === b.timeMs &&
    a.bodyBytes === b.bodyBytes &&
    a.orderingKey === b.orderingKey &&
    a.contentType === b.contentType &&
    a.traceparent === b.traceparent
  )
}

function greater(a: string, b: string): string {
  return b > a ? b : a
}

function greatest(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return greater(a, b)
}

/** The sending that says what the delivery is now: one that is not at its end, else the one that moved last. */
export function currentSending({ sendings }: DeliveryRow): Sending {
  let best = sendings[0] as Sending
  for (const sending of sendings) if (counts(sending, best)) best = sending
  return best
}

function counts(a: Sending, b: Sending): boolean {
  const [aFinal, bFinal] = [isFinal(a.status), isFinal(b.status)]
  if (aFinal !== bFinal) return bFinal
  if (a.timeMs !== b.timeMs) return a.timeMs > b.timeMs
  return a.origin > b.origin
}

/** Without the sendings that the log holds no more; null: it holds none. */
export function withoutForgotten(
  row: DeliveryRow,
  startOf: (topic: string, partition: number) => number,
): DeliveryRow | null {
  const sendings = row.sendings.filter(({ topic, partition, offset }) => offset >= startOf(topic, partition))
  if (sendings.length === row.sendings.length) return row
  return sendings.length === 0 ? null : { ...row, sendings }
}
