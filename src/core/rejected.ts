import { headerMap, type InRecord, type TopicPartition } from './record.ts'

/**
 * Headers added to a `rejected` record (schemas/rejected.json, version 1); key, value and other headers are the record's own.
 * Their names are used nowhere else, so a rejected delivery keeps all of its headers and can be put back.
 */
export const rejectedHeader = {
  version: 'ht-rejected',
  code: 'ht-rejected-code',
  reason: 'ht-rejected-reason',
  topic: 'ht-rejected-topic',
  partition: 'ht-rejected-partition',
  offset: 'ht-rejected-offset',
  timestamp: 'ht-rejected-timestamp',
  /** Only when the original did not fit: its value's length in bytes. */
  truncated: 'ht-rejected-truncated',
} as const

/** Stands on a record made up for one that can not be decoded; says why. */
export const undecodableHeader = 'ht-undecodable'

/** Room for a value and the original headers in a rejected record: below the 1 MiB a broker takes by default. */
export const rejectedMaxBytes = 900_000

export interface RejectedParts {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Record<string, Buffer>
}

/**
 * The record for the `rejected` topic. What does not fit is cut (headers first, then the value), never refused: an event
 * that can't be rejected would stop its partition for good.
 */
export function rejectedRecord(
  record: InRecord,
  at: TopicPartition,
  why: { readonly code: string; readonly reason: string },
): RejectedParts {
  const headers = headerMap()
  let room = rejectedMaxBytes
  let cut = false
  let key = record.key
  if (key !== null && key.length > 65_536) {
    key = key.subarray(0, 65_536)
    cut = true
  }
  room -= key?.length ?? 0
  for (const name in record.headers) {
    const value = record.headers[name] as Buffer
    const bytes = Buffer.byteLength(name) + value.length + 10
    // Half the room is the value's: headers must not push it out.
    if (room - bytes < rejectedMaxBytes / 2) cut = true
    else {
      headers[name] = value
      room -= bytes
    }
  }
  const full = record.value?.length ?? 0
  if (full > room) cut = true
  const put = (name: string, text: string) => {
    headers[name] = Buffer.from(text)
  }
  put(rejectedHeader.version, '1')
  put(rejectedHeader.code, why.code)
  put(rejectedHeader.reason, why.reason.slice(0, 1000))
  put(rejectedHeader.topic, at.topic)
  put(rejectedHeader.partition, String(at.partition))
  put(rejectedHeader.offset, String(record.offset))
  put(rejectedHeader.timestamp, String(record.timestampMs))
  if (cut) put(rejectedHeader.truncated, String(full))
  else delete headers[rejectedHeader.truncated]
  return { key, value: record.value === null ? null : record.value.subarray(0, room), headers }
}

/** What a `rejected` record says about itself. */
export interface Rejected {
  readonly code: string
  readonly reason: string
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  /** Length of the original value when it was cut, else null. */
  readonly truncatedFrom: number | null
}
