import { loggableUrl } from './attempt.ts'
import type { Outcome, Reply } from './outcome.ts'
import { parseRetryAfter, retryAfterCapMs } from './retry-after.ts'

/** 5xx that say "never like this" instead of "not now": retrying them can't help. */
const permanent5xx: ReadonlySet<number> = new Set([501, 505, 506, 508, 510, 511])

/**
 * What a reply means (design, section 6). Only the status decides, never the body. Without a status everything is worth
 * another try but a refused address. `nowMs`: when the reply came, for a `Retry-After` that is a date.
 */
export function classify(reply: Reply, nowMs: number, capMs = retryAfterCapMs): Outcome {
  switch (reply.t) {
    case 'response':
      return classifyStatus(reply, nowMs, capMs)
    case 'failure':
      if (reply.class === 'blocked') return { t: 'blocked', error: `blocked: ${reply.detail}` }
      // The same event and the same template give the same again.
      if (reply.class === 'body') return { t: 'rejected', error: reply.detail, status: null }
      return { t: 'retryable', error: `${reply.class}: ${reply.detail}`, status: null, retryAfterMs: null }
    case 'interrupted':
      return { t: 'interrupted', error: reply.detail }
    default:
      return reply satisfies never
  }
}

function classifyStatus(reply: Extract<Reply, { t: 'response' }>, nowMs: number, capMs: number): Outcome {
  const { status } = reply
  if (status >= 200 && status <= 299) return { t: 'delivered', status }
  if (status === 410) return { t: 'gone', status }
  if (isRetryable(status)) {
    const retryAfterMs = reply.retryAfter === null ? null : parseRetryAfter(reply.retryAfter, nowMs, capMs)
    return { t: 'retryable', error: String(status), status, retryAfterMs }
  }
  return { t: 'rejected', error: describe(reply), status }
}

function isRetryable(status: number): boolean {
  if (status === 408 || status === 425 || status === 429) return true
  return status >= 500 && status <= 599 && !permanent5xx.has(status)
}

/** A redirect is never followed, so its target is what the subscriber has to know. */
function describe(reply: Extract<Reply, { t: 'response' }>): string {
  const { status, location } = reply
  if (status < 300 || status > 399) return status === 409 ? '409 (the endpoint may have it already)' : String(status)
  return location === undefined
    ? `${status} redirect, not followed`
    : `${status} redirect, not followed: ${target(location)}`
}

/** Without what may be a credential. */
function target(location: string): string {
  return URL.canParse(location) ? loggableUrl(location) : (location.split(/[?#]/, 1)[0] ?? '')
}
