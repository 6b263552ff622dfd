import fc from 'fast-check'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { partitionOf } from '../../src/core/partition.ts'

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
