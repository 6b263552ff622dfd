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
 * for longer than it takes to pass it on must not keep that alive. Its headers are made anew each time they are asked
 * for: a delivery has a dozen, only a move needs them, and as objects they would take more memory than its body.
 */
export function ownedRecord(record: InRecord): InRecord {
  return new OwnedRecord(record)
}

/**
 * Small records share a piece of memory, as they come: a piece of its own for each costs more than copying into it, and the
 * garbage collector counts every one. One that stays for long keeps at most a piece alive.
 */
const pieceBytes = 16_384
let piece = Buffer.alloc(0)
let pieceUsed = 0

function owned(bytes: number): Buffer {
  if (bytes > pieceBytes / 4) return Buffer.allocUnsafeSlow(bytes)
  if (pieceUsed + bytes > piece.length) {
    piece = Buffer.allocUnsafeSlow(pieceBytes)
    pieceUsed = 0
  }
  const from = pieceUsed
  pieceUsed += bytes
  return piece.subarray(from, pieceUsed)
}

class OwnedRecord implements InRecord {
  readonly offset: number
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** Key, value, then of each header four bytes of length and the value. */
  readonly #memory: Buffer
  readonly #headersFrom: number
  readonly #names: readonly string[]

  constructor({ offset, timestampMs, key, value, headers }: InRecord) {
    this.offset = offset
    this.timestampMs = timestampMs
    this.#names = namesOf(headers)
    this.#headersFrom = (key?.length ?? 0) + (value?.length ?? 0)
    let bytes = this.#headersFrom
    for (const name of this.#names) bytes += 4 + (headers[name] as Buffer).length
    this.#memory = owned(bytes)
    this.key = key === null ? null : this.#own(key, 0)
    this.value = value === null ? null : this.#own(value, key?.length ?? 0)
    let at = this.#headersFrom
    for (const name of this.#names) {
      const part = headers[name] as Buffer
      at = this.#memory.writeUInt32LE(part.length, at)
      part.copy(this.#memory, at)
      at += part.length
    }
  }

  get headers(): HeaderMap {
    const headers = headerMap()
    let at = this.#headersFrom
    for (const name of this.#names) {
      const from = at + 4
      at = from + this.#memory.readUInt32LE(at)
      headers[name] = this.#memory.subarray(from, at)
    }
    return headers
  }

  #own(part: Buffer, at: number): Buffer {
    part.copy(this.#memory, at)
    return this.#memory.subarray(at, at + part.length)
  }
}

let lastNames: readonly string[] = []

/** One record has the names of the last: they share the list. */
function namesOf(headers: HeaderMap): readonly string[] {
  let same = 0
  for (const name in headers) {
    if (lastNames[same] !== name) {
      same = -1
      break
    }
    same++
  }
  if (same !== lastNames.length) lastNames = Object.keys(headers)
  return lastNames
}
