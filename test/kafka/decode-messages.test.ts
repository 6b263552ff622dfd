import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { headerMap, type OutRecord } from '../../src/core/record.ts'
import { codecs, decodeLimit } from '../../src/kafka/codecs.ts'
import { crc32c } from '../../src/kafka/crc32c.ts'
import { encodeBatch, recordSize } from '../../src/kafka/encode-batch.ts'
import { library } from '../../src/kafka/load.ts'
import { decodeMessages } from '../../src/kafka/patches/decode-messages.ts'
import type { RecordSet } from '../../src/kafka/record-set.ts'
import { stockKafkajs } from '../support/stock-kafkajs.ts'

const stock = stockKafkajs()
const identity = { producerId: '-1', producerEpoch: -1, transactional: false }

function batch(records: readonly Partial<OutRecord>[], baseOffset = 0): Buffer {
  const full = records.map((r) => ({ topic: 't', partition: 0, key: null, value: null, headers: {}, ...r }))
  const out = Buffer.from(encodeBatch(full, full.map(recordSize), identity, 0, 1_700_000_000_000))
  out.writeBigInt64BE(BigInt(baseOffset), 0)
  return out
}

/** With the checksum of what is in it. */
function sealed(batch: Buffer): Buffer {
  batch.writeUInt32BE(crc32c(batch, 21), 17)
  return batch
}

/** The same batch with its records compressed, as a foreign producer would send it. */
async function compressed(plain: Buffer, type: number): Promise<Buffer> {
  const body = await codecs[type]?.codec.compress({ buffer: plain.subarray(61) })
  const out = Buffer.concat([plain.subarray(0, 61), body ?? plain.subarray(61)])
  out.writeInt32BE(out.length - 12, 8)
  out.writeInt16BE(type, 21)
  return sealed(out)
}

function decoder(...batches: Buffer[]) {
  const all = Buffer.concat(batches)
  const size = Buffer.alloc(4)
  size.writeInt32BE(all.length)
  const Decoder = stock<new (buffer: Buffer) => never>('protocol/decoder')
  return new Decoder(Buffer.concat([size, all]))
}

const decode = (...batches: Buffer[]): Promise<RecordSet> => decodeMessages(decoder(...batches))
const stockDecode = (...batches: Buffer[]) =>
  stock<(d: unknown) => Promise<{ key: Buffer; value: Buffer; headers: Record<string, Buffer> }[]>>(
    'protocol/requests/fetch/v4/decodeMessages',
  )(decoder(...batches))

const recordsOf = (set: RecordSet) => set.batches.flatMap((b) => b.records)
const undecodableOf = (set: RecordSet) => set.batches.flatMap((b) => b.undecodable)

describe('record decoding', () => {
  it('gives back whatever was encoded (property)', async () => {
    const bytes = fc.uint8Array({ maxLength: 300 }).map((b) => Buffer.from(b))
    const one = fc.record({
      key: fc.option(bytes),
      value: fc.option(bytes),
      headers: fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 80 }), bytes), { maxLength: 20 }).map(headerMap),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 30 }), fc.nat(2 ** 40), async (records, base) => {
        const set = await decode(batch(records, base))
        expect(undecodableOf(set)).toEqual([])
        expect(recordsOf(set)).toEqual(
          records.map((r, i) => ({ ...r, offset: base + i, timestampMs: 1_700_000_000_000 })),
        )
        expect(set.batches[0]?.nextOffset).toBe(base + records.length)
      }),
      { numRuns: 200 },
    )
  })

  it('writes batches that the stock library reads', async () => {
    const [first] = await stockDecode(batch([{ key: 'k', value: Buffer.from('v'), headers: headerMap([['a', 'b']]) }]))
    expect([first?.key.toString(), first?.value.toString(), first?.headers.a?.toString()]).toEqual(['k', 'v', 'b'])
  })

  it('takes the last of a repeated header and gives names no foreign meaning; the stock library does (row 4)', async () => {
    const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty']
    const headers = headerMap(names.map((name) => [name, 'x']))
    const [record] = recordsOf(await decode(batch([{ headers }])))
    expect(Object.getPrototypeOf(record?.headers)).toBe(null)
    for (const name of names) expect(record?.headers[name]).toEqual(Buffer.from('x'))
    const [wrong] = await stockDecode(batch([{ headers }]))
    expect(Buffer.isBuffer(wrong?.headers.constructor)).toBe(false)

    const twice = batch([
      {
        headers: headerMap([
          ['aa', '1'],
          ['ab', '2'],
        ]),
      },
    ])
    twice[twice.indexOf('ab') + 1] = 'a'.charCodeAt(0)
    sealed(twice)
    expect(recordsOf(await decode(twice))[0]?.headers.aa).toEqual(Buffer.from('2'))
  })

  it('reads many headers in linear time; the stock library needs a multiple (row 3)', async () => {
    const many = batch([{ headers: headerMap(Array.from({ length: 1000 }, (_, i) => [`header-${i}`, 'x'] as const)) }])
    const time = async (run: () => Promise<unknown>) => {
      const from = performance.now()
      await run()
      return performance.now() - from
    }
    await decode(many)
    const ours = Math.min(
      await time(() => decode(many)),
      await time(() => decode(many)),
      await time(() => decode(many)),
    )
    const theirs = Math.min(await time(() => stockDecode(many)), await time(() => stockDecode(many)))
    expect(theirs / ours).toBeGreaterThan(10)
  })

  it('reports one record with too many headers and delivers its neighbours', async () => {
    const headers = headerMap(Array.from({ length: 1001 }, (_, i) => [`h${i}`, ''] as const))
    const set = await decode(batch([{ key: 'a' }, { headers }, { key: 'c' }], 10))
    expect(recordsOf(set).map(({ offset }) => offset)).toEqual([10, 12])
    expect(undecodableOf(set)).toEqual([{ offset: 11, nextOffset: 12, reason: '1001 headers, at most 1000 are read' }])
  })

  it('leaves a batch that is cut off for the next fetch', async () => {
    const whole = batch([{ key: 'a' }], 0)
    const set = await decode(whole, batch([{ key: 'b' }], 1).subarray(0, 40))
    expect(set.batches.map((b) => b.nextOffset)).toEqual([1])
  })

  it.each([
    ['message format 1', (b: Buffer) => b.writeInt8(1, 16), 0, 1],
    ['unknown compression type 7', (b: Buffer) => b.writeInt16BE(7, 21), 0, 3],
    ['record batch ends before it begins', (b: Buffer) => b.writeInt32BE(-5, 23), 0, 1],
    ['record is', (b: Buffer) => b.fill(0xff, 61), 0, 3],
    ['record offset is outside of its batch', (b: Buffer) => b.writeInt8(40, 64), 0, 3],
  ])('skips what is damaged and goes on behind it: %s', async (reason, damage, offset, nextOffset) => {
    const bad = batch([{ key: 'a' }, { key: 'b' }, { key: 'c' }])
    damage(bad)
    sealed(bad)
    const set = await decode(bad, batch([{ key: 'd' }], 3))
    expect(undecodableOf(set)).toEqual([{ offset, nextOffset, reason: expect.stringContaining(reason) }])
    expect(recordsOf(set).map(({ key }) => key?.toString())).toEqual(['d'])
  })

  it('skips a batch whose checksum is wrong, which the stock library delivers', async () => {
    const bad = batch([{ value: Buffer.from('abc') }])
    bad[bad.indexOf('abc')] = 'x'.charCodeAt(0)
    expect(undecodableOf(await decode(bad))).toEqual([
      { offset: 0, nextOffset: 1, reason: 'record batch with a wrong checksum' },
    ])
    expect((await stockDecode(bad))[0]?.value.toString()).toBe('xbc')
  })

  it('has the checksum of the standard, at every length and alignment (RFC 3720; the stock one, property)', () => {
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa)
    expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43)
    const theirs = stock<(buffer: Buffer) => number>('protocol/recordBatch/crc32C')
    const cut = fc.tuple(fc.uint8Array({ maxLength: 100 }), fc.nat(9), fc.nat(9))
    fc.assert(
      fc.property(cut, ([bytes, head, tail]) => {
        const end = Math.max(head, bytes.length - tail)
        return crc32c(bytes, head, end) === theirs(Buffer.from(bytes.subarray(head, end)))
      }),
    )
  })

  it('never throws and never hangs on random bytes (property)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 17, maxLength: 200 }), fc.nat(199), async (noise, at) => {
        const bytes = batch([{ key: 'a', value: Buffer.alloc(60) }, { key: 'b' }])
        bytes.set(
          noise.subarray(0, Math.max(0, Math.min(noise.length, bytes.length - 12 - at))),
          12 + at > bytes.length ? 12 : 12 + at,
        )
        const set = await decode(sealed(bytes))
        expect(set.batches.length).toBeLessThanOrEqual(1)
      }),
      { numRuns: 500 },
    )
  })
})

describe('compressed batches (row 5)', () => {
  const before = decodeLimit.maxBytes
  afterEach(() => {
    decodeLimit.maxBytes = before
  })

  it.each(Object.entries(codecs).map(([type, { name }]) => [name, Number(type)] as const))(
    '%s: reads it, and refuses a bomb',
    async (name, type) => {
      const plain = batch([{ key: 'k', value: Buffer.alloc(200_000, 'x') }, { key: 'l' }])
      const packed = await compressed(plain, type)
      expect(recordsOf(await decode(packed)).map(({ key, value }) => [key?.toString(), value?.length])).toEqual([
        ['k', 200_000],
        ['l', undefined],
      ])
      decodeLimit.maxBytes = 100_000
      const set = await decode(packed, batch([{ key: 'after' }], 2))
      expect(undecodableOf(set)).toEqual([
        { offset: 0, nextOffset: 2, reason: `${name}: unpacks to more than 100000 bytes` },
      ])
      expect(recordsOf(set).map(({ key }) => key?.toString())).toEqual(['after'])
    },
  )

  it.each(Object.entries(codecs).map(([type, { name }]) => [name, Number(type)] as const))(
    '%s: damage becomes a reason',
    async (name, type) => {
      const packed = await compressed(batch([{ value: Buffer.alloc(5_000, 'x') }]), type)
      packed.fill(0xfe, 61)
      sealed(packed)
      const [only] = undecodableOf(await decode(packed))
      expect(only).toMatchObject({ offset: 0, nextOffset: 1 })
      expect(only?.reason).toContain(`${name}: `)
    },
  )

  it('the stock library throws for snappy, lz4 and zstd, and unpacks a gzip bomb whole', async () => {
    const plain = batch([{ value: Buffer.alloc(64 * 1024 * 1024) }])
    for (const type of [2, 3, 4])
      await expect(stockDecode(await compressed(batch([{}]), type))).rejects.toThrow(/not implemented/)
    const bomb = await compressed(plain, 1)
    expect(bomb.length).toBeLessThan(100_000)
    expect((await stockDecode(bomb))[0]?.value.length).toBe(64 * 1024 * 1024)
    expect(undecodableOf(await decode(bomb))).toHaveLength(1)
  })

  it('reads raw snappy blocks (librdkafka) and snappy-java framing', async () => {
    const { compress } = await import('snappy')
    const raw = (await compress(Buffer.from('hello hello hello'))) as Buffer
    expect((await codecs[2]?.codec.decompress(raw))?.toString()).toBe('hello hello hello')
    const framed = await codecs[2]?.codec.compress({ buffer: Buffer.from('framed') })
    expect((await codecs[2]?.codec.decompress(framed as Buffer))?.toString()).toBe('framed')
  })

  it('kafkajs itself uses the same codecs', () => {
    for (const [type, { codec }] of Object.entries(codecs)) {
      expect(library.kafkajs.CompressionCodecs[Number(type) as 1]()).toBe(codec)
    }
  })
})
