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
  readonly urlChanged?: boolean
  readonly lane: number
  /** `encodeOrigin` of the delivery. */
  readonly origin: string
}

export const excerptBytes = 4096

/** At most 4 KiB of a response body as text; what is not UTF-8 becomes U+FFFD, a character cut at the end is left out. */
export function excerptText(body: Buffer): string {
  if (body.length <= excerptBytes) return wholeText.decode(body)
  // `stream` holds back an incomplete last character instead of replacing it; what is held makes the decoder used up.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(body.subarray(0, excerptBytes), { stream: true })
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
