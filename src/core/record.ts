/** Header names are exact; the map has no prototype, values are raw bytes. Of a repeated header the last value counts. */
export type HeaderMap = Readonly<Record<string, Buffer>>

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** A record as it was read. Offsets are safe integers; `timestampMs` is what the topic's timestamp type says (create or append time). */
export interface InRecord {
  readonly offset: number
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: HeaderMap
}

/** A record to append. `partition` is always chosen by us (see `partition.ts`), never by the client. */
export interface OutRecord {
  readonly topic: string
  readonly partition: number
  readonly key: Buffer | string | null
  readonly value: Buffer | null
  readonly headers: HeaderMap
}

/** One partition's part of a fetch, read committed, control records left out. */
export interface FetchedBatch {
  readonly topic: string
  readonly partition: number
  readonly records: readonly InRecord[]
  /** First offset after everything this fetch covered: control records, aborted records and compacted gaps included. */
  readonly nextOffset: number
  /** Log end (high watermark) the broker reported with the fetch. */
  readonly highWatermark: number
  /** Ranges of offsets that were passed over because they can't be read (foreign codec, damage, bomb). Absent: none. */
  readonly undecodable?: readonly { readonly offset: number; readonly nextOffset: number; readonly reason: string }[]
}

/** A committed (or to be committed) position of a consumer group. `offset` is null where the group has none. */
export interface GroupOffset extends TopicPartition {
  readonly offset: number | null
  readonly metadata: string
}

export const emptyHeaders: HeaderMap = Object.freeze(Object.create(null) as Record<string, Buffer>)

export function headerMap(entries: Iterable<readonly [string, Buffer | string]> = []): Record<string, Buffer> {
  const map = Object.create(null) as Record<string, Buffer>
  for (const [name, value] of entries) map[name] = typeof value === 'string' ? Buffer.from(value) : value
  return map
}

/** Bytes a record takes in memory and, nearly, on the wire. */
export function recordBytes(record: Pick<InRecord, 'key' | 'value' | 'headers'>): number {
  let bytes = 64 + (record.key?.length ?? 0) + (record.value?.length ?? 0)
  for (const name in record.headers) bytes += name.length + (record.headers[name] as Buffer).length + 8
  return bytes
}

/**
 * The same record in memory of its own. What was read is a slice of a whole fetch response (megabytes); what is held
 * for longer than it takes to pass it on must not keep that alive.
 */
export function ownedRecord(record: InRecord): InRecord {
  let bytes = (record.key?.length ?? 0) + (record.value?.length ?? 0)
  for (const name in record.headers) bytes += (record.headers[name] as Buffer).length
  const memory = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  const own = (part: Buffer): Buffer => {
    const slice = memory.subarray(at, at + part.length)
    part.copy(slice)
    at += part.length
    return slice
  }
  const headers = headerMap()
  for (const name in record.headers) headers[name] = own(record.headers[name] as Buffer)
  return {
    offset: record.offset,
    timestampMs: record.timestampMs,
    key: record.key === null ? null : own(record.key),
    value: record.value === null ? null : own(record.value),
    headers,
  }
}
