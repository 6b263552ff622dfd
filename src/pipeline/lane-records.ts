import { type Attempt, encodeAttempt, excerptText, loggableUrl } from '../core/attempt.ts'
import { deadHeader, encodeOrigin, lineHeader, movedHeaders } from '../core/delivery.ts'
import type { Outcome, Reply } from '../core/outcome.ts'
import { emptyHeaders, type OutRecord } from '../core/record.ts'
import type { Settlement } from '../core/settle.ts'
import { urlMark } from '../core/url-mark.ts'
import type { Work } from './work.ts'

/** A delivery on its way to a tier. `attempts`: POSTs made so far. `lineKey`: the ordered line it leads. */
export function toTier(
  topic: string,
  partition: number,
  work: Work,
  lineKey: Buffer | null,
  change: { attempts: number; dueMs: number; error: string | null },
): OutRecord {
  const headers = movedHeaders(work.record.headers, {
    attempts: change.attempts,
    dueMs: change.dueMs,
    lastError: change.error,
  })
  setLine(headers, lineKey)
  return { topic, partition, key: work.record.key, value: work.record.value, headers }
}

export function toParked(topic: string, partition: number, line: string, work: Work): OutRecord {
  const { attempts, lastError } = work.delivery
  const headers = movedHeaders(work.record.headers, { attempts, dueMs: null, lastError })
  headers[lineHeader] = Buffer.from(line)
  return { topic, partition, key: work.record.key, value: work.record.value, headers }
}

export function toDead(
  topic: string,
  partition: number,
  work: Work,
  lineKey: Buffer | null,
  change: { attempts: number; reason: string; error: string; atMs: number },
): OutRecord {
  const headers = movedHeaders(work.record.headers, { attempts: change.attempts, dueMs: null, lastError: change.error })
  headers[deadHeader.reason] = Buffer.from(change.reason)
  headers[deadHeader.atMs] = Buffer.from(String(change.atMs))
  setLine(headers, lineKey)
  return { topic, partition, key: work.record.key, value: work.record.value, headers }
}

/** What one POST, or the decision to make none, left in the delivery log. */
export interface AttemptFacts {
  readonly attempt: number
  readonly startedAtMs: number
  readonly url: string
  readonly reply: Reply | null
  readonly outcome: Outcome | null
}

export function toAttempt(
  topic: string,
  lane: number,
  work: Work,
  facts: AttemptFacts,
  settlement: Settlement,
): OutRecord {
  const { delivery } = work
  const { reply, outcome } = facts
  const value: Attempt = {
    v: 1,
    deliveryId: delivery.id,
    subscriptionId: delivery.subscriptionId,
    tenant: delivery.tenant,
    eventId: delivery.eventId,
    eventType: delivery.eventType,
    attempt: facts.attempt,
    startedAtMs: Math.floor(facts.startedAtMs),
    durationMs: reply === null ? 0 : Math.round(reply.durationMs),
    status: reply?.t === 'response' ? reply.status : null,
    error: errorOf(settlement, outcome),
    errorClass: reply?.t === 'failure' ? reply.class : null,
    outcome: outcome?.t ?? null,
    settlement: settlement.t,
    dueMs: settlement.t === 'scheduled' ? settlement.dueMs : null,
    excerpt: reply?.t === 'response' && reply.excerpt.length > 0 ? excerptText(reply.excerpt) : '',
    url: loggableUrl(facts.url),
    urlChanged: isSubstituted(delivery, facts.url) ? true : undefined,
    lane,
    origin: encodeOrigin(delivery.origin),
  }
  return {
    topic,
    partition: lane,
    key: delivery.subscriptionId,
    value: encodeAttempt(value),
    headers: emptyHeaders,
  }
}

function isSubstituted({ urlMark: matched }: Work['delivery'], url: string): boolean {
  return matched !== undefined && url !== '' && urlMark(url) !== matched
}

function errorOf(settlement: Settlement, outcome: Outcome | null): string | null {
  if (settlement.t === 'cancelled') return settlement.reason
  if (settlement.t === 'dead' && settlement.reason === 'operator') return settlement.error
  return outcome === null || outcome.t === 'delivered' ? null : outcome.t === 'gone' ? '410' : outcome.error
}

function setLine(headers: Record<string, Buffer>, lineKey: Buffer | null): void {
  if (lineKey === null) delete headers[lineHeader]
  else headers[lineHeader] = lineKey
}
