import { promisify } from 'node:util'
import { gunzip, gzip, zstdCompress, zstdDecompress } from 'node:zlib'
import { compressFrame, decompressFrame } from 'lz4-napi'
import { compress as snappyCompress, uncompress as snappyUncompress } from 'snappy'
import { lz4FrameLength } from './lz4-length.ts'

/** What kafkajs asks of a codec: `compress` gets its Encoder, of which only `buffer` matters. */
export interface Codec {
  compress(encoder: { readonly buffer: Buffer }): Promise<Buffer>
  decompress(data: Buffer): Promise<Buffer>
}

/**
 * Bound on what one compressed record batch may unpack to. Process-wide because kafkajs decodes without any context:
 * 254 KiB of gzip can hold 256 MiB, and every consumer of the topic would unpack it again and again.
 */
export const decodeLimit = { maxBytes: 32 * 1024 * 1024 }

const gzipAsync = promisify(gzip)
const gunzipAsync = promisify(gunzip)
const zstdAsync = promisify(zstdCompress)
const unzstdAsync = promisify(zstdDecompress)

const gzipCodec: Codec = {
  compress: (encoder) => gzipAsync(encoder.buffer),
  decompress: async (data) => {
    try {
      return await gunzipAsync(data, { maxOutputLength: decodeLimit.maxBytes })
    } catch (error) {
      throw capped(error)
    }
  },
}

const zstdCodec: Codec = {
  compress: (encoder) => zstdAsync(encoder.buffer),
  decompress: async (data) => {
    try {
      return await unzstdAsync(data, { maxOutputLength: decodeLimit.maxBytes })
    } catch (error) {
      throw capped(error)
    }
  },
}

const lz4Codec: Codec = {
  compress: (encoder) => compressFrame(encoder.buffer),
  decompress: async (data) => {
    // The library has no cap, so the exact length is counted first, without unpacking.
    checkLength(lz4FrameLength(data))
    return decompressFrame(data)
  },
}

/** First bytes of snappy-java's framing, which Java clients write; librdkafka writes one raw block. */
const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const xerialHeaderBytes = 16

const snappyCodec: Codec = {
  compress: async (encoder) => {
    const block = await snappyCompress(encoder.buffer)
    const header = Buffer.alloc(xerialHeaderBytes + 4)
    xerialMagic.copy(header)
    header.writeInt32BE(1, 8)
    header.writeInt32BE(1, 12)
    header.writeInt32BE(block.length, 16)
    return Buffer.concat([header, block])
  },
  decompress: async (data) => {
    const blocks = snappyBlocks(data)
    checkLength(blocks.reduce((sum, block) => sum + snappyLength(block), 0))
    const parts: Buffer[] = []
    for (const block of blocks) parts.push((await snappyUncompress(block, { asBuffer: true })) as Buffer)
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
  },
}

function snappyBlocks(data: Buffer): Buffer[] {
  if (data.length < xerialHeaderBytes || data.compare(xerialMagic, 0, 8, 0, 8) !== 0) return [data]
  const blocks: Buffer[] = []
  let at = xerialHeaderBytes
  while (at < data.length) {
    if (at + 4 > data.length) throw new Error('snappy framing is cut off')
    const length = data.readInt32BE(at)
    at += 4
    if (length < 0 || at + length > data.length) throw new Error('snappy framing is damaged')
    blocks.push(data.subarray(at, at + length))
    at += length
  }
  return blocks
}

/** A snappy block begins with its unpacked length (varint of at most 32 bits). */
function snappyLength(block: Buffer): number {
  let length = 0
  for (let i = 0; i < 5; i++) {
    const byte = block[i]
    if (byte === undefined) break
    length += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return length
  }
  throw new Error('snappy block has no length')
}

function checkLength(bytes: number): void {
  if (bytes > decodeLimit.maxBytes) throw new Error(tooLong())
}

function capped(error: unknown): unknown {
  return (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' ? new Error(tooLong(), { cause: error }) : error
}

function tooLong(): string {
  return `unpacks to more than ${decodeLimit.maxBytes} bytes`
}

/** By the three compression bits of a record batch's attributes. 5, 6 and 7 mean nothing today. */
export const codecs: Readonly<Record<number, { readonly name: string; readonly codec: Codec }>> = {
  1: { name: 'gzip', codec: gzipCodec },
  2: { name: 'snappy', codec: snappyCodec },
  3: { name: 'lz4', codec: lz4Codec },
  4: { name: 'zstd', codec: zstdCodec },
}
