import { messageOf } from '../../core/error.ts'
import { emptyHeaders, type InRecord } from '../../core/record.ts'
import { codecs } from '../codecs.ts'
import { crc32c } from '../crc32c.ts'
import type { RecordBatch, RecordSet, Undecodable } from '../record-set.ts'

/** The part of kafkajs's Decoder that is used here. */
interface WireDecoder {
  readonly buffer: Buffer
  offset: number
  readInt32(): number
}

/** More headers than any real producer sends, few enough to stay harmless: a record beyond it counts as undecodable. */
const maxHeaders = 1000

const headerBytes = 61
const empty: RecordSet = { batches: [], bytes: 0 }

/**
 * Replaces `protocol/requests/fetch/v4/decodeMessages` (all later versions use it). The stock one costs O(n²) in the
 * headers of a record, invents values for names such as `constructor`, makes decimal strings of every offset, and
 * throws away the whole response of all partitions when one batch can't be read.
 * Here a batch or record that can't be read becomes an `Undecodable` range, and everything around it is delivered.
 * Keys, values and header values are slices of the response (or of the unpacked batch): keeping one keeps all of it.
 * The checksum is verified (kafkajs does not): brokers hand out what their disks give them. Source: KIP-98 (record batch v2).
 */
export async function decodeMessages(decoder: WireDecoder): Promise<RecordSet> {
  const bytes = decoder.readInt32()
  if (bytes <= 0 || decoder.offset + bytes > decoder.buffer.length) return empty
  const buffer = decoder.buffer.subarray(decoder.offset, decoder.offset + bytes)
  decoder.offset += bytes
  const batches: RecordBatch[] = []
  let at = 0
  // The tail may be cut off (maxBytes): it comes with the next fetch.
  while (at + 17 <= buffer.length) {
    const end = at + 12 + buffer.readInt32BE(at + 8)
    if (end > buffer.length) break
    if (end < at + 17) {
      const offset = int64(buffer, at)
      batches.push(unreadable(offset, offset + 1, 'record batch of impossible length'))
      break
    }
    const decoded = decodeBatch(buffer, at, end)
    batches.push(decoded instanceof Promise ? await decoded : decoded)
    at = end
  }
  return { batches, bytes }
}

function decodeBatch(buffer: Buffer, at: number, end: number): RecordBatch | Promise<RecordBatch> {
  const baseOffset = int64(buffer, at)
  const magic = buffer[at + 16]
  if (magic !== 2) return unreadable(baseOffset, baseOffset + 1, `message format ${magic} (only 2 is read)`)
  if (end - at < headerBytes) return unreadable(baseOffset, baseOffset + 1, 'record batch is cut off')
  const attributes = buffer.readInt16BE(at + 21)
  const batch: BatchContext = {
    baseOffset,
    nextOffset: baseOffset + buffer.readInt32BE(at + 23) + 1,
    producerId: int64(buffer, at + 43),
    transactional: (attributes & 0x10) !== 0,
    isControl: (attributes & 0x20) !== 0,
    firstTimestampMs: int64(buffer, at + 27),
    appendTimeMs: (attributes & 0x08) !== 0 ? int64(buffer, at + 35) : null,
    count: buffer.readInt32BE(at + 57),
  }
  if (batch.nextOffset <= baseOffset)
    return unreadable(baseOffset, baseOffset + 1, 'record batch ends before it begins')
  if (crc32c(buffer, at + 21, end) !== buffer.readUInt32BE(at + 17))
    return failed(batch, 'record batch with a wrong checksum')
  const body = buffer.subarray(at + headerBytes, end)
  const type = attributes & 0x07
  if (type === 0) return decodeRecords(batch, body)
  const known = codecs[type]
  if (known === undefined) return failed(batch, `unknown compression type ${type}`)
  return known.codec.decompress(body).then(
    (unpacked) => decodeRecords(batch, unpacked),
    (error: unknown) => failed(batch, `${known.name}: ${messageOf(error)}`),
  )
}

interface BatchContext {
  readonly baseOffset: number
  readonly nextOffset: number
  readonly producerId: number
  readonly transactional: boolean
  readonly isControl: boolean
  readonly firstTimestampMs: number
  readonly appendTimeMs: number | null
  readonly count: number
}

function decodeRecords(batch: BatchContext, body: Buffer): RecordBatch {
  const records: InRecord[] = []
  const undecodable: Undecodable[] = []
  const reader = new RecordReader(body)
  let expected = batch.baseOffset
  for (let i = 0; i < batch.count; i++) {
    try {
      const length = reader.varint()
      const end = reader.at + length
      if (length < 0 || end > body.length) throw new Error('record is cut off')
      const record = reader.record(batch, end)
      if (record.problem === null) records.push(record.value)
      else
        undecodable.push({ offset: record.value.offset, nextOffset: record.value.offset + 1, reason: record.problem })
      expected = record.value.offset + 1
      reader.at = end
    } catch (error) {
      undecodable.push({ offset: expected, nextOffset: batch.nextOffset, reason: messageOf(error) })
      break
    }
  }
  const control = batch.isControl ? controlType(records[0]) : null
  const { baseOffset, nextOffset, producerId, transactional } = batch
  return { baseOffset, nextOffset, producerId, transactional, control, records, undecodable }
}

/** Control record key: version int16, type int16; 0 aborts, 1 commits. */
function controlType(record: InRecord | undefined): 'abort' | 'commit' | 'other' {
  const key = record?.key
  if (!key || key.length < 4) return 'other'
  const type = key.readInt16BE(2)
  return type === 0 ? 'abort' : type === 1 ? 'commit' : 'other'
}

class RecordReader {
  at = 0
  readonly #buffer: Buffer

  constructor(buffer: Buffer) {
    this.#buffer = buffer
  }

  record(batch: BatchContext, end: number): { value: InRecord; problem: string | null } {
    this.at += 1
    const timestampMs = batch.firstTimestampMs + this.varint()
    const offset = batch.baseOffset + this.varint()
    if (offset < batch.baseOffset || offset >= batch.nextOffset)
      throw new Error('record offset is outside of its batch')
    const value: InRecord = {
      offset,
      timestampMs: batch.appendTimeMs ?? timestampMs,
      key: this.#bytes(end),
      value: this.#bytes(end),
      headers: emptyHeaders,
    }
    const count = this.varint()
    if (count <= 0) return { value, problem: null }
    if (count > maxHeaders) return { value, problem: `${count} headers, at most ${maxHeaders} are read` }
    const headers = Object.create(null) as Record<string, Buffer>
    for (let i = 0; i < count; i++) {
      const name = this.#name(end)
      // A null header value has no meaning of its own to us: it counts as empty.
      headers[name] = this.#bytes(end) ?? nothing
    }
    return { value: { ...value, headers }, problem: null }
  }

  /** Zigzag, up to the 53 bits a number holds exactly: varints and the varlongs of timestamps alike. */
  varint(): number {
    const buffer = this.#buffer
    let byte = buffer[this.at++] as number
    let raw = byte & 0x7f
    if (byte >= 0x80) {
      let scale = 128
      do {
        if (this.at >= buffer.length || scale > 2 ** 63) throw new Error('record is damaged')
        byte = buffer[this.at++] as number
        raw += (byte & 0x7f) * scale
        scale *= 128
      } while (byte >= 0x80)
    } else if (this.at > buffer.length) {
      throw new Error('record is cut off')
    }
    return raw % 2 === 0 ? raw / 2 : -(raw + 1) / 2
  }

  #bytes(end: number): Buffer | null {
    const length = this.varint()
    if (length < 0) return null
    const from = this.at
    if (from + length > end) throw new Error('record is damaged')
    this.at = from + length
    return this.#buffer.subarray(from, from + length)
  }

  #name(end: number): string {
    const length = this.varint()
    const from = this.at
    if (length < 0 || from + length > end) throw new Error('record header is damaged')
    this.at = from + length
    return headerName(this.#buffer, from, length)
  }
}

const nothing = Buffer.alloc(0)

/** Header names repeat from record to record: a small table saves making the string anew (and its memory). */
const names: ({ bytes: Buffer; text: string } | undefined)[] = new Array(1024)

function headerName(buffer: Buffer, from: number, length: number): string {
  if (length === 0 || length > 64) return buffer.toString('utf8', from, from + length)
  // Of the end, where names differ: two of our own that shared a place would take each other's with every record.
  let hash = length
  for (let i = Math.max(0, length - 8); i < length; i++) hash = (hash * 31 + (buffer[from + i] as number)) | 0
  const slot = (hash ^ (hash >>> 8)) & 1023
  const known = names[slot]
  if (known !== undefined && known.bytes.length === length && same(known.bytes, buffer, from)) return known.text
  const text = buffer.toString('utf8', from, from + length)
  names[slot] = { bytes: Buffer.from(buffer.subarray(from, from + length)), text }
  return text
}

function same(known: Buffer, buffer: Buffer, from: number): boolean {
  for (let i = 0; i < known.length; i++) if (known[i] !== buffer[from + i]) return false
  return true
}

function failed(batch: BatchContext, reason: string): RecordBatch {
  const { baseOffset, nextOffset, producerId, transactional } = batch
  const undecodable = [{ offset: baseOffset, nextOffset, reason }]
  return { baseOffset, nextOffset, producerId, transactional, control: null, records: [], undecodable }
}

function unreadable(offset: number, nextOffset: number, reason: string): RecordBatch {
  const undecodable = [{ offset, nextOffset, reason }]
  return {
    baseOffset: offset,
    nextOffset,
    producerId: -1,
    transactional: false,
    control: null,
    records: [],
    undecodable,
  }
}

/** Offsets, producer ids and times fit in 53 bits. */
function int64(buffer: Buffer, at: number): number {
  return buffer.readInt32BE(at) * 4294967296 + buffer.readUInt32BE(at + 4)
}
