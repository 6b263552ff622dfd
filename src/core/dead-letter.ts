import {
  type Delivery,
  deadHeader,
  decodeDelivery,
  deliveryHeader,
  encodeOrigin,
  lineHeader,
  movedHeaders,
  type Origin,
} from './delivery.ts'
import type { InRecord, OutRecord } from './record.ts'

export interface DeadFilter {
  readonly subscription?: string | undefined
  readonly reason?: string | undefined
  /** As it stands in the delivery: `503`, `timeout`. */
  readonly lastError?: string | undefined
  readonly tenant?: string | undefined
  /** Its deliveries stand in several lanes. */
  readonly spread?: boolean
  /** Died at or after it, and before it, epoch ms. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** Delivery ids. */
  readonly ids?: ReadonlySet<string> | undefined
}

export interface DeadLetter {
  readonly partition: number
  readonly record: InRecord
  /** Null when its headers can't be read; `problem` then says why. */
  readonly delivery: Delivery | null
  readonly problem: string | null
  readonly reason: string
  readonly deadAtMs: number
}

export function decodeDead(partition: number, record: InRecord): DeadLetter {
  const decoded = decodeDelivery(record)
  const at = Number(record.headers[deadHeader.atMs]?.toString() ?? Number.NaN)
  return {
    partition,
    record,
    delivery: decoded.ok ? decoded.value : null,
    problem: decoded.ok ? null : decoded.reason,
    reason: record.headers[deadHeader.reason]?.toString() ?? 'unknown',
    deadAtMs: Number.isSafeInteger(at) ? at : record.timestampMs,
  }
}

export function deadMatches(letter: DeadLetter, filter: DeadFilter): boolean {
  const subscription = letter.delivery?.subscriptionId ?? letter.record.key?.toString()
  if (filter.subscription !== undefined && filter.subscription !== subscription) return false
  if (filter.tenant !== undefined && filter.tenant !== letter.delivery?.tenant) return false
  if (filter.reason !== undefined && filter.reason !== letter.reason) return false
  if (filter.lastError !== undefined && filter.lastError !== letter.delivery?.lastError) return false
  if (filter.since !== undefined && letter.deadAtMs < filter.since) return false
  if (filter.until !== undefined && letter.deadAtMs >= filter.until) return false
  return filter.ids === undefined || (letter.delivery !== null && filter.ids.has(letter.delivery.id))
}

/**
 * The record that sends a dead letter again: same delivery id, same body, no attempts made, no due time. Its origin is the
 * job's own stream, in which offsets rise in job order: that is how lanes recognise a repeat of this job.
 */
export function redriveRecord(letter: DeadLetter, origin: Origin, topic: string, partition: number): OutRecord | null {
  const { delivery, record } = letter
  if (delivery === null) return null
  const headers = movedHeaders(record.headers, { attempts: 0, dueMs: null, lastError: null })
  delete headers[deadHeader.reason]
  delete headers[deadHeader.atMs]
  delete headers[lineHeader]
  headers[deliveryHeader.origin] = Buffer.from(encodeOrigin(origin))
  const { subscriptionId: key, body: value } = delivery
  return { topic, partition, key, value, headers }
}
