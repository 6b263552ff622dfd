import { checkCustomHeaders, isHeaderValue } from '../core/custom-headers.ts'
import { type LegacySignature, legacyHeaderProblem } from '../core/endpoint-settings.ts'
import { fail, ok, type Result } from '../core/result.ts'
import { bodySignature, signatureHeader, webhookIdProblem } from '../core/signature.ts'
import type { Post } from '../ports.ts'

/**
 * What every POST carries besides `host`, `connection` and `content-length`:
 *
 * | header | value |
 * |---|---|
 * | `content-type` | the event's; `application/octet-stream` when that is not a legal header value |
 * | `user-agent` | `Hooktide/<version>` |
 * | `webhook-id` | delivery id, equal on every attempt |
 * | `webhook-timestamp` | seconds, new on every attempt |
 * | `webhook-signature` | one entry per current key, newest first; absent only when the subscription has no keys |
 * | `idempotency-key` | as `webhook-id` |
 * | `x-delivery-attempt` | 1-based |
 * | `x-event-type` | event type, percent-encoded where it is not printable ASCII |
 * | `traceparent` | when the event brought a well-formed one (W3C Trace Context) |
 *
 * | `authorization` | when the subscription has `auth` |
 *
 * then, for receivers that come from elsewhere, the legacy signature `sha256=<hex of HMAC-SHA256 over the body>` under the
 * name the post asks for, and the subscription's own. No `accept-encoding`: nothing is ever inflated.
 */
export function buildHeaders(post: Post, nowMs: number, userAgent: string): Result<string[]> {
  const problem = webhookIdProblem(post.deliveryId)
  if (problem !== null) return fail(problem)
  const timestampS = Math.floor(nowMs / 1000)
  const headers = [
    'content-type',
    post.contentType !== '' && isHeaderValue(post.contentType) ? post.contentType : 'application/octet-stream',
    'user-agent',
    userAgent,
    'webhook-id',
    post.deliveryId,
    'webhook-timestamp',
    String(timestampS),
    'idempotency-key',
    post.deliveryId,
    'x-delivery-attempt',
    String(post.attempt),
    'x-event-type',
    isHeaderValue(post.eventType) ? post.eventType : encodeURIComponent(post.eventType.toWellFormed()),
  ]
  if (post.keys.length > 0)
    headers.push('webhook-signature', signatureHeader(post.keys, post.deliveryId, timestampS, post.body))
  if (post.traceparent !== null && traceparent.test(post.traceparent)) headers.push('traceparent', post.traceparent)
  const { access, legacySignature } = post
  const authorization = access?.authorization ?? null
  if (authorization !== null) headers.push('authorization', authorization)
  if (legacySignature !== undefined) {
    const name = legacyName(legacySignature)
    if (!name.ok) return name
    const hmac = access?.legacyKey ?? post.keys.find((key) => key.kind === 'v1')
    const { prefix, format } = legacySignature
    if (hmac !== undefined) headers.push(name.value, bodySignature(hmac, post.body, prefix, format))
  }
  if (post.headers === undefined) return ok(headers)
  const own = ownHeaders(post.headers)
  if (!own.ok) return own
  // The subscription's own never stand beside ours of the same name.
  for (let i = 0; i < own.value.length; i += 2) {
    const name = own.value[i] as string
    if (authorization !== null && name.toLowerCase() === 'authorization') continue
    headers.push(name, own.value[i + 1] as string)
  }
  return ok(headers)
}

/** Judged again here, as `ownHeaders`. */
function legacyName(legacy: LegacySignature): Result<string> {
  let known = judgedNames.get(legacy)
  if (known === undefined) {
    const reason = legacyHeaderProblem(legacy.header)
    const prefix = legacy.prefix ?? ''
    if (reason !== null) known = fail(`legacySignature.header: ${reason}`)
    else known = isHeaderValue(prefix) ? ok(legacy.header) : fail('legacySignature.prefix is no header value')
    judgedNames.set(legacy, known)
  }
  return known
}

const judgedNames = new WeakMap<object, Result<string>>()

/** Judged again here, once per object: a record written by an older version or another hand is not trusted. */
function ownHeaders(headers: Readonly<Record<string, string>>): Result<readonly string[]> {
  let known = judged.get(headers)
  if (known === undefined) {
    const check = checkCustomHeaders(headers)
    known = check.ok ? ok(Object.entries(check.value).flat()) : check
    judged.set(headers, known)
  }
  return known
}

const judged = new WeakMap<object, Result<readonly string[]>>()
const traceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
