import fc from 'fast-check'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { laneOf, partitionOf } from '../../src/core/partition.ts'

const client = kafkajs.Partitioners.DefaultPartitioner()

function clientPartition(key: string | Buffer, count: number): number {
  const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({ partitionId, leader: 0 }))
  // The last partitioner of kafkajs is the Java compatible one; it wants the key as text or bytes.
  return client({ topic: 't', partitionMetadata, message: { key, value: null } } as never)
}

test('the partition is the one every Kafka client chooses: 300 keys, ASCII, unicode, all lengths modulo 4', () => {
  const words = ['a', 'sub_', 'ключ', '鍵', '🔑', 'é', ' ', '\u0000', 'orders/', '-']
  const keys = Array.from({ length: 300 }, (_, i) => `${words[i % words.length]}${'x'.repeat(i % 13)}${i}`)
  for (const key of keys)
    for (const count of [1, 7, 12, 100]) expect(partitionOf(key, count), key).toBe(clientPartition(key, count))
})

test('any bytes as well', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.integer({ min: 1, max: 500 }), (bytes, count) => {
      const key = Buffer.from(bytes)
      expect(partitionOf(key, count)).toBe(clientPartition(key, count))
    }),
  )
})

test.each([
  // From the Java client's own UtilsTest: murmur2 of these keys, sign bit cleared, modulo 1000.
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
])("the hash of %s is the Java client's", (key, hash) => {
  expect(partitionOf(key, 1000)).toBe((hash & 0x7fffffff) % 1000)
})

test('a subscription has one lane; spread over n it has n of them, evenly, and only where nothing is ordered', () => {
  const lanes = 12
  const of = (spread: number | undefined, ordering: string) => {
    const counts = new Map<number, number>()
    for (let i = 0; i < 6_000; i++) {
      const lane = laneOf(
        { id: 'whale', ordering, ...(spread === undefined ? {} : { spread }) },
        `delivery-${i}`,
        lanes,
      )
      counts.set(lane, (counts.get(lane) ?? 0) + 1)
    }
    return counts
  }
  const home = partitionOf('whale', lanes)
  for (const ordering of ['key', 'subscription']) expect([...of(4, ordering).keys()]).toEqual([home])
  expect([...of(undefined, 'none').keys()]).toEqual([home])
  const four = of(4, 'none')
  expect([...four.keys()].sort()).toEqual([0, 1, 2, 3].map((i) => (home + i) % lanes).sort())
  for (const count of four.values()) expect(Math.abs(count - 1_500)).toBeLessThan(150)
  // More than there are lanes: all of them, once each.
  expect(of(100, 'none').size).toBe(lanes)
})
