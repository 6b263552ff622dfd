import { checkCustomHeaders, isHeaderValue } from '../core/custom-headers.ts'
import { fail, ok, type Result } from '../core/result.ts'
import { hubSignature256, signatureHeader, webhookIdProblem } from '../core/signature.ts'
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
 * then, for receivers that come from elsewhere, the legacy signature `sha256=<hex of HMAC-SHA256 over the body>` of the
 * newest HMAC key under the name the post asks for, and the subscription's own. No `accept-encoding`: nothing is ever inflated.
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
  const legacy = post.legacySignatureHeader
  const hmac = legacy === undefined ? undefined : post.keys.find((key) => key.kind === 'v1')
  if (legacy !== undefined && hmac !== undefined) headers.push(legacy, hubSignature256(hmac, post.body))
  if (post.headers === undefined) return ok(headers)
  const own = ownHeaders(post.headers)
  if (!own.ok) return own
  for (const item of own.value) headers.push(item)
  return ok(headers)
}

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
