import { type Claim, decodeClaim, encodeClaim } from './claim.ts'
import { type HeaderMap, headerMap, type InRecord } from './record.ts'
import { fail, ok, type Result } from './result.ts'

/** Where a delivery came from; what makes a router's repeat recognisable (design, "Fan-out exactly once"). */
export interface Origin {
  /** Events topic and partition, or a job: `orders/3`, `replay:J1`. No `:` at the end, no white space. */
  readonly stream: string
  readonly generation: number
  readonly offset: number
}

/** One event for one subscription, as it stands in `deliveries`, a tier, `parked` or `dead`. The record's value is the body. */
export interface Delivery {
  /** Equal on every attempt: `webhook-id` and `Idempotency-Key`. */
  readonly id: string
  readonly subscriptionId: string
  readonly tenant: string
  readonly eventId: string
  readonly eventType: string
  readonly contentType: string
  /** Ordering key of the event; null: the event is not ordered. */
  readonly orderingKey: string | null
  readonly origin: Origin
  /** When the event was produced (epoch ms, its record's timestamp). */
  readonly eventTimeMs: number
  /** POSTs made so far; the next one is `attempts + 1`. */
  readonly attempts: number
  /** Absolute due time (epoch ms) of the next attempt; null: at once. */
  readonly dueMs: number | null
  /** The last failure in one short line (`503`, `timeout`), for people. */
  readonly lastError: string | null
  readonly traceparent: string | null
  readonly body: Buffer
  /** Where the body is, when it is too large for the record; `body` is empty then. */
  readonly claim?: Claim
  /** `urlMark` of the URL it was matched for; absent: written by a version before it. */
  readonly urlMark?: string
}

/** Header names of a delivery record, version 1 (schemas/delivery-headers.json). */
export const deliveryHeader = {
  version: 'ht-v',
  id: 'ht-id',
  subscription: 'ht-sub',
  tenant: 'ht-tenant',
  event: 'ht-event',
  type: 'ht-type',
  contentType: 'ht-ct',
  key: 'ht-key',
  origin: 'ht-origin',
  time: 'ht-time',
  attempts: 'ht-attempts',
  due: 'ht-due',
  error: 'ht-error',
  traceparent: 'traceparent',
  claim: 'ht-claim',
  url: 'ht-url',
} as const

/** Added when a delivery is parked or leads a line from a tier: the line it belongs to. */
export const lineHeader = 'ht-line'

/** Added to a dead delivery. */
export const deadHeader = { reason: 'ht-dead-reason', atMs: 'ht-dead-at' } as const

export function encodeOrigin(origin: Origin): string {
  return `${origin.stream}:${origin.generation}:${origin.offset}`
}

export function decodeOrigin(text: string): Origin | null {
  const last = text.lastIndexOf(':')
  const middle = text.lastIndexOf(':', last - 1)
  if (middle <= 0) return null
  const generation = countOf(text.slice(middle + 1, last))
  const offset = countOf(text.slice(last + 1))
  if (generation === null || offset === null) return null
  return { stream: text.slice(0, middle), generation, offset }
}

export function encodeDelivery(delivery: Omit<Delivery, 'body'>): Record<string, Buffer> {
  const h = headerMap()
  const put = (name: string, value: string) => {
    h[name] = Buffer.from(value)
  }
  put(deliveryHeader.version, '1')
  put(deliveryHeader.id, delivery.id)
  put(deliveryHeader.subscription, delivery.subscriptionId)
  put(deliveryHeader.tenant, delivery.tenant)
  put(deliveryHeader.event, delivery.eventId)
  put(deliveryHeader.type, delivery.eventType)
  put(deliveryHeader.contentType, delivery.contentType)
  put(deliveryHeader.origin, encodeOrigin(delivery.origin))
  put(deliveryHeader.time, String(delivery.eventTimeMs))
  put(deliveryHeader.attempts, String(delivery.attempts))
  if (delivery.orderingKey !== null) put(deliveryHeader.key, delivery.orderingKey)
  if (delivery.dueMs !== null) put(deliveryHeader.due, String(delivery.dueMs))
  if (delivery.lastError !== null) put(deliveryHeader.error, delivery.lastError)
  if (delivery.claim !== undefined) put(deliveryHeader.claim, encodeClaim(delivery.claim))
  if (delivery.urlMark !== undefined) put(deliveryHeader.url, delivery.urlMark)
  if (delivery.traceparent !== null) put(deliveryHeader.traceparent, delivery.traceparent)
  return h
}

/** Headers of the same delivery after a move: only what changed is written anew, foreign headers stay. */
export function movedHeaders(
  headers: HeaderMap,
  change: { attempts: number; dueMs: number | null; lastError: string | null },
): Record<string, Buffer> {
  const h = Object.assign(headerMap(), headers)
  h[deliveryHeader.attempts] = Buffer.from(String(change.attempts))
  if (change.dueMs === null) delete h[deliveryHeader.due]
  else h[deliveryHeader.due] = Buffer.from(String(change.dueMs))
  if (change.lastError === null) delete h[deliveryHeader.error]
  else h[deliveryHeader.error] = Buffer.from(change.lastError)
  return h
}

export function decodeDelivery(record: Pick<InRecord, 'value' | 'headers'>): Result<Delivery> {
  const { headers: h, value } = record
  const text = (name: string) => h[name]?.toString() ?? ''
  const version = text(deliveryHeader.version)
  if (version === '') return fail(`not a delivery: header ${deliveryHeader.version} is missing`)
  if (version !== '1')
    return fail(`delivery of unknown version ${version.slice(0, 20)}; upgrade Hooktide to read it`, 'unknown-version')
  if (value === null) return fail('delivery without a value')
  for (const name of requiredHeaders) if (h[name] === undefined) return fail(`delivery header ${name} is missing`)
  const origin = decodeOrigin(text(deliveryHeader.origin))
  if (origin === null) return fail(`delivery header ${deliveryHeader.origin} is malformed`)
  const attempts = countOf(text(deliveryHeader.attempts))
  if (attempts === null) return fail(`delivery header ${deliveryHeader.attempts} is not a count`)
  const due = h[deliveryHeader.due] === undefined ? null : countOf(text(deliveryHeader.due))
  if (due === null && h[deliveryHeader.due] !== undefined)
    return fail(`delivery header ${deliveryHeader.due} is not a time in ms`)
  const time = countOf(text(deliveryHeader.time))
  if (time === null) return fail(`delivery header ${deliveryHeader.time} is not a time in ms`)
  const claim =
    h[deliveryHeader.claim] === undefined ? null : decodeClaim(text(deliveryHeader.claim), Number.MAX_SAFE_INTEGER)
  if (claim?.ok === false) return fail(`delivery header ${deliveryHeader.claim} is malformed`)
  return ok({
    id: text(deliveryHeader.id),
    subscriptionId: text(deliveryHeader.subscription),
    tenant: text(deliveryHeader.tenant),
    eventId: text(deliveryHeader.event),
    eventType: text(deliveryHeader.type),
    contentType: text(deliveryHeader.contentType),
    orderingKey: h[deliveryHeader.key]?.toString() ?? null,
    origin,
    eventTimeMs: time,
    attempts,
    dueMs: due,
    lastError: h[deliveryHeader.error]?.toString() ?? null,
    traceparent: h[deliveryHeader.traceparent]?.toString() ?? null,
    body: value,
    ...(claim === null ? {} : { claim: claim.value }),
    ...(h[deliveryHeader.url] === undefined ? {} : { urlMark: text(deliveryHeader.url) }),
  })
}

const requiredHeaders = [
  deliveryHeader.id,
  deliveryHeader.subscription,
  deliveryHeader.tenant,
  deliveryHeader.event,
  deliveryHeader.type,
  deliveryHeader.contentType,
  deliveryHeader.origin,
  deliveryHeader.time,
  deliveryHeader.attempts,
]

/** Digits only: `Number` also takes '', '0x10', ' 1 ' and '1e3'. */
function countOf(text: string): number | null {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return null
  const n = Number(text)
  return Number.isSafeInteger(n) ? n : null
}
