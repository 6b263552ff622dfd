import type { FailureClass, Outcome } from './outcome.ts'

/** What followed from an attempt. `released`: taken back into its line without having been spent. */
export type SettlementName = 'done' | 'scheduled' | 'dead' | 'cancelled' | 'released'

/** The value of an `attempts` record (schemas/attempt.json, version 1): one per settled attempt, the delivery log. */
export interface Attempt {
  readonly v: 1
  readonly deliveryId: string
  readonly subscriptionId: string
  readonly tenant: string
  readonly eventId: string
  readonly eventType: string
  /** 1-based. Settled without a POST (cancelled): the number the POST would have had. */
  readonly attempt: number
  readonly startedAtMs: number
  readonly durationMs: number
  readonly status: number | null
  /** One short line for people; null when delivered. */
  readonly error: string | null
  /** Set when there was no status. */
  readonly errorClass: FailureClass | null
  /** null: settled without a POST. */
  readonly outcome: Outcome['t'] | null
  readonly settlement: SettlementName
  /** When the next attempt is due (epoch ms); null when there is none. */
  readonly dueMs: number | null
  /** First bytes of the response as text, see `excerptText`. */
  readonly excerpt: string
  /** See `loggableUrl`. */
  readonly url: string
  /** The subscription's URL is another one than when the event was matched; absent: it is not, or there was no POST. */
  readonly urlChanged?: boolean | undefined
  readonly lane: number
  /** `encodeOrigin` of the delivery. */
  readonly origin: string
}

/**
 * The record's value: what `JSON.stringify` makes of it, byte for byte, put together from parts that seldom need escaping.
 * One is written for every POST.
 */
export function encodeAttempt(attempt: Attempt): Buffer {
  const a = attempt
  return Buffer.from(
    `{"v":1,"deliveryId":${text(a.deliveryId)},"subscriptionId":${text(a.subscriptionId)},"tenant":${text(a.tenant)},` +
      `"eventId":${text(a.eventId)},"eventType":${text(a.eventType)},"attempt":${a.attempt},"startedAtMs":${a.startedAtMs},` +
      `"durationMs":${a.durationMs},"status":${a.status},"error":${text(a.error)},"errorClass":${text(a.errorClass)},` +
      `"outcome":${text(a.outcome)},"settlement":"${a.settlement}","dueMs":${a.dueMs},"excerpt":${text(a.excerpt)},` +
      `"url":${text(a.url)},${a.urlChanged === true ? '"urlChanged":true,' : ''}"lane":${a.lane},"origin":${text(a.origin)}}`,
  )
}

/** As JSON. */
function text(value: string | null): string {
  if (value === null) return 'null'
  return needsNoEscape.test(value) ? `"${value}"` : JSON.stringify(value)
}

const needsNoEscape = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

export const excerptBytes = 4096

/** At most 4 KiB of a response body as text; what is not UTF-8 becomes U+FFFD, a character cut at the end is left out. */
export function excerptText(body: Buffer): string {
  if (body.length <= shortBytes && isAscii(body)) return body.toString('latin1')
  if (body.length <= excerptBytes) return wholeText.decode(body)
  // `stream` holds back an incomplete last character instead of replacing it; what is held makes the decoder used up.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(body.subarray(0, excerptBytes), { stream: true })
}

/** An `ok` or so: most of all answers, and a loop is cheaper than the decoder. */
const shortBytes = 64

function isAscii(bytes: Buffer): boolean {
  for (let i = 0; i < bytes.length; i++) if ((bytes[i] as number) > 0x7f) return false
  return true
}

/** Making one costs more than most excerpts. */
const wholeText = new TextDecoder('utf-8', { ignoreBOM: true })

/** A URL as it may stand in logs and records: tokens live in credentials, queries and fragments, so these are left out. */
export function loggableUrl(url: string): string {
  let clean = loggable.get(url)
  if (clean === undefined) {
    clean = cleanUrl(url)
    if (loggable.size >= 10_000) loggable.clear()
    loggable.set(url, clean)
  }
  return clean
}

function cleanUrl(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url)
    return `${protocol}//${host}${pathname}`
  } catch {
    return 'invalid-url'
  }
}

/** Asked for with every attempt, of as many URLs as there are subscriptions. */
const loggable = new Map<string, string>()
