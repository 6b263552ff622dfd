import type { OutRecord } from '../core/record.ts'
import { crc32c } from './crc32c.ts'

export interface ProducerIdentity {
  readonly producerId: string
  readonly producerEpoch: number
  readonly transactional: boolean
}

const batchHeaderBytes = 61

/** Longest varint of an offset delta that a chunk can have: sizes are counted with it, so a chunk never grows. */
const offsetDeltaBytes = 3

/** Upper bound of a record's bytes in a batch (exact but for the offset delta). */
export function recordSize(record: OutRecord): number {
  const body = bodySize(record, offsetDeltaBytes)
  return varintSize(body) + body
}

function bodySize(record: OutRecord, deltaBytes: number): number {
  const headers = record.headers
  let size = 2 + deltaBytes
  size += bytesSize(
    record.key === null ? -1 : typeof record.key === 'string' ? Buffer.byteLength(record.key) : record.key.length,
  )
  size += bytesSize(record.value === null ? -1 : record.value.length)
  let count = 0
  for (const name in headers) {
    count++
    size += bytesSize(nameBytes(name).length) + bytesSize((headers[name] as Buffer).length)
  }
  return size + varintSize(count)
}

/**
 * One uncompressed record batch, magic 2, in one buffer. (kafkajs builds an object and three buffers per record.)
 * All records get the same create time. Source: KIP-98.
 */
export function encodeBatch(
  records: readonly OutRecord[],
  sizes: readonly number[],
  identity: ProducerIdentity,
  firstSequence: number,
  nowMs: number,
): Buffer {
  let bound = batchHeaderBytes
  for (const size of sizes) bound += size
  const out = Buffer.allocUnsafe(bound)
  let at = batchHeaderBytes
  for (let i = 0; i < records.length; i++) at = writeRecord(out, at, records[i] as OutRecord, i)
  out.writeBigInt64BE(0n, 0)
  out.writeInt32BE(at - 12, 8)
  out.writeInt32BE(-1, 12)
  out[16] = 2
  out.writeInt16BE(identity.transactional ? 0x10 : 0, 21)
  out.writeInt32BE(records.length - 1, 23)
  out.writeBigInt64BE(BigInt(nowMs), 27)
  out.writeBigInt64BE(BigInt(nowMs), 35)
  out.writeBigInt64BE(BigInt(identity.producerId), 43)
  out.writeInt16BE(identity.producerEpoch, 51)
  out.writeInt32BE(firstSequence, 53)
  out.writeInt32BE(records.length, 57)
  out.writeUInt32BE(crc32c(out, 21, at), 17)
  return out.subarray(0, at)
}

function writeRecord(out: Buffer, from: number, record: OutRecord, offsetDelta: number): number {
  let at = writeVarint(out, from, bodySize(record, varintSize(offsetDelta)))
  out[at++] = 0
  out[at++] = 0
  at = writeVarint(out, at, offsetDelta)
  at = writeBytes(out, at, typeof record.key === 'string' ? Buffer.from(record.key) : record.key)
  at = writeBytes(out, at, record.value)
  let count = 0
  for (const _ in record.headers) count++
  at = writeVarint(out, at, count)
  for (const name in record.headers) {
    at = writeBytes(out, at, nameBytes(name))
    at = writeBytes(out, at, record.headers[name] as Buffer)
  }
  return at
}

function writeBytes(out: Buffer, at: number, bytes: Buffer | null): number {
  if (bytes === null) return writeVarint(out, at, -1)
  const from = writeVarint(out, at, bytes.length)
  bytes.copy(out, from)
  return from + bytes.length
}

function writeVarint(out: Buffer, from: number, value: number): number {
  let at = from
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  while (rest >= 0x80) {
    out[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  out[at++] = rest
  return at
}

function varintSize(value: number): number {
  const rest = ((value << 1) ^ (value >> 31)) >>> 0
  return rest < 0x80 ? 1 : rest < 0x4000 ? 2 : rest < 0x20_0000 ? 3 : rest < 0x1000_0000 ? 4 : 5
}

function bytesSize(length: number): number {
  return length < 0 ? 1 : varintSize(length) + length
}

/** The same dozen names on every record. */
const names = new Map<string, Buffer>()

function nameBytes(name: string): Buffer {
  let bytes = names.get(name)
  if (bytes === undefined) {
    bytes = Buffer.from(name)
    if (names.size >= 1000) names.clear()
    names.set(name, bytes)
  }
  return bytes
}
