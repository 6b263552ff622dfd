import { createHash } from 'node:crypto'
import { type Claim, claimHeader, decodeClaim } from './claim.ts'
import { datarefClaim } from './dataref.ts'
import type { EventIdentity } from './delivery-id.ts'
import type { EventLimits, EventProblem, EventResult } from './event.ts'
import { isTraceparent, maxKeyChars, Refusal, rules } from './event-rules.ts'
import type { HeaderMap, InRecord, TopicPartition } from './record.ts'
import { fail, ok } from './result.ts'

/** What a format found, unchecked; undefined: not given. */
interface Attributes {
  readonly type: string | undefined
  readonly id: string | undefined
  /** Set: a CloudEvent, whose id is unique per source. */
  readonly source: string | undefined
  readonly tenant: string | undefined
  readonly key: string | undefined
  readonly contentType: string
  readonly traceparent: string | undefined
  /** Of a CloudEvent in structured mode without data. */
  readonly claim?: Claim | undefined
}

/**
 * Reads an event in one of four formats, the first that the headers tell: CloudEvents 1.0 structured
 * (`content-type: application/cloudevents+json`), CloudEvents binary (`ce_*`), Hooktide's headers (`event-type`,
 * optionally `event-id`, `event-tenant`, `event-key`, `content-type`), else a JSON envelope with `type` and optionally
 * `id`, `tenant`, `key`. Only the structured and envelope formats parse the value. Never throws.
 * Source: CloudEvents Kafka protocol binding 1.0.2, sections 3.2 and 3.3.
 */
export function parseEvent(record: InRecord, at: TopicPartition, limits: EventLimits): EventResult {
  try {
    return parse(record, at, limits)
  } catch (refusal) {
    if (refusal instanceof Refusal) return fail(refusal.reason, refusal.code)
    throw refusal
  }
}

function parse(record: InRecord, at: TopicPartition, limits: EventLimits): EventResult {
  const { headers } = record
  const pointer = claimOf(record, limits)
  const value = pointer === undefined ? record.value : empty
  if (value === null) throw new Refusal('null-value', 'the record has no value; produce the event body as the value')
  if (value.length > limits.maxBytes)
    throw new Refusal('too-large', `value of ${value.length} bytes, at most ${limits.maxBytes} (router.maxEventBytes)`)
  let count = 0
  for (const _ in headers) count++
  if (count > limits.maxHeaders)
    throw new Refusal('too-many-headers', `${count} headers, at most ${limits.maxHeaders} (router.maxHeaders)`)

  const found = attributes(headers, value, limits.maxClaimBytes ?? 0)
  const claim = pointer ?? found.claim
  if (found.type === undefined) throw new Refusal('missing-type', noType)
  rules.type(found.type)
  if (found.id !== undefined) rules.id(found.id)
  if (found.source !== undefined) rules.source(found.source)
  const tenant = found.tenant ?? 'default'
  rules.tenant(tenant)
  if (found.key !== undefined) rules.key(found.key)
  rules.contentType(found.contentType)
  const position = { t: 'position', topic: at.topic, partition: at.partition, offset: record.offset } as const
  let identity: EventIdentity = position
  if (found.id !== undefined && found.source !== undefined)
    identity = { t: 'cloudevent', source: found.source, id: found.id }
  else if (found.id !== undefined) identity = { t: 'given', topic: at.topic, id: found.id }
  return ok({
    id: found.id ?? `${at.topic}/${at.partition}/${record.offset}`,
    source: found.source ?? null,
    identity,
    type: found.type,
    tenant,
    orderingKey: found.key ?? keyOfRecord(record.key),
    contentType: found.contentType,
    timeMs: Math.max(0, record.timestampMs),
    // A broken trace context is dropped, not refused (W3C Trace Context 3.2): the event matters more.
    traceparent: found.traceparent !== undefined && isTraceparent(found.traceparent) ? found.traceparent : null,
    body: claim === undefined ? value : empty,
    ...(claim === undefined ? {} : { claim }),
  })
}

/** Beside a pointer stands no body: which of the two would be meant? */
function claimOf({ headers, value }: InRecord, limits: EventLimits): Claim | undefined {
  const given = text(headers, claimHeader)
  const maxBytes = limits.maxClaimBytes ?? 0
  if (given === undefined) {
    // In binary mode only; beside data it says the same, and the data is here (dataref extension).
    if (headers.ce_dataref === undefined || (value !== null && value.length > 0)) return undefined
    if (headers.ce_specversion === undefined || isStructured(contentTypeOf(headers))) return undefined
    return datarefClaim((name) => text(headers, `ce_${name}`), maxBytes)
  }
  if (value !== null && value.length > 0)
    throw new Refusal(
      'bad-claim',
      `header ${claimHeader} stands beside a body; leave the value empty, or the header out`,
    )
  const claim = decodeClaim(given, maxBytes)
  if (!claim.ok) throw new Refusal(claim.code === 'too-large' ? 'too-large' : 'bad-claim', claim.reason)
  return claim.value
}

function attributes(headers: HeaderMap, value: Buffer, maxClaimBytes: number): Attributes {
  const contentType = contentTypeOf(headers)
  const traceparent = headers.traceparent?.toString('latin1')
  if (contentType !== undefined && isStructured(contentType))
    return structured(contentType.trim(), value, traceparent, maxClaimBytes)
  if (headers.ce_specversion !== undefined || headers.ce_type !== undefined || headers.ce_id !== undefined) {
    const get = (name: string) => text(headers, `ce_${name}`)
    cloudEventRules(get)
    return {
      type: get('type'),
      id: get('id'),
      source: get('source'),
      tenant: get('tenant'),
      key: get('partitionkey'),
      contentType: contentType ?? 'application/json',
      traceparent: traceparent ?? get('traceparent'),
    }
  }
  const type = text(headers, 'event-type')
  const id = text(headers, 'event-id')
  const tenant = text(headers, 'event-tenant')
  const key = text(headers, 'event-key')
  if ((type ?? id ?? tenant ?? key) !== undefined)
    return { type, id, source: undefined, tenant, key, contentType: contentType ?? 'application/json', traceparent }
  return { ...envelope(value), contentType: contentType ?? 'application/json', traceparent }
}

function structured(
  contentType: string,
  value: Buffer,
  traceparent: string | undefined,
  maxClaimBytes: number,
): Attributes {
  const format = (contentType.split(';')[0] as string).trim().toLowerCase()
  if (format !== 'application/cloudevents+json')
    throw new Refusal(
      'unsupported-format',
      `${format.slice(0, 100)} is not read here; use application/cloudevents+json or binary mode`,
    )
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1]
  if (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset))
    throw new Refusal('unsupported-format', `charset ${charset.slice(0, 40)} is not read here; write JSON in UTF-8`)
  const object = objectOf(value, 'a CloudEvent in structured mode')
  const get = members(object)
  cloudEventRules(get)
  const hasData = (object.data ?? object.data_base64 ?? null) !== null
  const claim = hasData ? undefined : datarefClaim(members(object, 'datarefsize'), maxClaimBytes)
  return {
    type: get('type'),
    id: get('id'),
    source: get('source'),
    tenant: get('tenant'),
    key: get('partitionkey'),
    // What is delivered is then the data alone.
    contentType: claim === undefined ? contentType : (get('datacontenttype') ?? 'application/json'),
    traceparent: traceparent ?? get('traceparent'),
    claim,
  }
}

function cloudEventRules(get: (name: string) => string | undefined): void {
  const version = get('specversion')
  if (version !== undefined && version !== '1.0')
    throw new Refusal(
      'unsupported-format',
      `CloudEvents specversion "${version.slice(0, 20)}" is not read here; use 1.0`,
    )
  for (const name of ['specversion', 'id', 'source'])
    if (get(name) === undefined) throw new Refusal('missing-attribute', `the CloudEvent has no ${name}; it is required`)
}

function envelope(value: Buffer): Pick<Attributes, 'type' | 'id' | 'source' | 'tenant' | 'key'> {
  const get = members(objectOf(value, 'a JSON envelope (no header names a type)'))
  return { type: get('type'), id: get('id'), source: undefined, tenant: get('tenant'), key: get('key') }
}

function objectOf(value: Buffer, what: string): Record<string, unknown> {
  let data: unknown
  try {
    data = JSON.parse(utf8.decode(value))
  } catch {
    throw new Refusal('bad-json', `the value is not JSON in UTF-8, but is read as ${what}; ${noTypeRemedy}`)
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw new Refusal('bad-json', `the value is not a JSON object, but is read as ${what}; ${noTypeRemedy}`)
  return data as Record<string, unknown>
}

/** Text members; null counts as not given. `whole`: one that may be a number as well. */
function members(object: Record<string, unknown>, whole?: string): (name: string) => string | undefined {
  return (name) => {
    const member = Object.hasOwn(object, name) ? object[name] : undefined
    if (member === undefined || member === null) return undefined
    if (typeof member === 'string') return member
    if (name === whole && typeof member === 'number') return String(member)
    throw new Refusal(problemOf[name] ?? 'missing-attribute', `${name} is a ${typeof member}, must be a text`)
  }
}

function contentTypeOf(headers: HeaderMap): string | undefined {
  return text(headers, 'content-type') ?? text(headers, 'Content-Type')
}

function isStructured(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*application\/cloudevents/i.test(contentType)
}

/** A header as text; undefined when it is absent. */
function text(headers: HeaderMap, name: string): string | undefined {
  const bytes = headers[name]
  if (bytes === undefined) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    throw new Refusal('not-utf8', `header ${name} is not UTF-8; encode it as UTF-8 text`)
  }
}

/** The record's key orders where no key is named. A long one is hashed: as good for order, and it fits a header. */
function keyOfRecord(key: Buffer | null): string | null {
  if (key === null || key.length === 0) return null
  if (key.length > maxKeyChars) return `sha256:${createHash('sha256').update(key).digest('hex')}`
  try {
    return utf8.decode(key)
  } catch {
    return null
  }
}

/** ignoreBOM false: a byte order mark is skipped, as JSON readers may (RFC 8259, 8.1). */
const empty = Buffer.alloc(0)
const utf8 = new TextDecoder('utf-8', { fatal: true })
const noTypeRemedy = 'set header event-type, or ce_* headers'
const noType = `the event has no type; ${noTypeRemedy}, or write a JSON envelope with "type"`
const problemOf: Readonly<Record<string, EventProblem>> = {
  type: 'bad-type',
  id: 'bad-id',
  source: 'bad-source',
  tenant: 'bad-tenant',
  key: 'bad-key',
  partitionkey: 'bad-key',
  dataref: 'bad-claim',
  datarefsize: 'bad-claim',
  datarefsha256: 'bad-claim',
}
