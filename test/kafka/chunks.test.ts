import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OutRecord } from '../../src/core/record.ts'
import { halves, rounds } from '../../src/kafka/chunks.ts'
import { encodeBatch, recordSize } from '../../src/kafka/encode-batch.ts'
import { record } from '../support/kafka.ts'

const identity = { producerId: '1', producerEpoch: 0, transactional: false }

const records = fc.array(
  fc
    .record({
      topic: fc.constantFrom('a', 'b'),
      partition: fc.nat(2),
      size: fc.nat(400),
      name: fc.string({ maxLength: 20 }),
    })
    .map(({ topic, partition, size, name }) =>
      record(topic, Buffer.alloc(size), { partition, headers: { [name]: Buffer.alloc(3) } }),
    ),
  { maxLength: 60 },
)

describe('splitting records into rounds of chunks (row 14)', () => {
  it('keeps every record, the order within a partition, and the bound (property)', () => {
    fc.assert(
      fc.property(records, fc.integer({ min: 50, max: 2_000 }), (list, maxBytes) => {
        const plan = rounds(list, maxBytes)
        const byPartition = new Map<string, OutRecord[]>()
        for (const round of plan) {
          const keys = round.map(({ topic, partition }) => `${topic}/${partition}`)
          expect(new Set(keys).size).toBe(keys.length)
          for (const chunk of round) {
            const bytes = chunk.sizes.reduce((sum, size) => sum + size, 0)
            expect(chunk.records.length === 1 || bytes <= maxBytes).toBe(true)
            expect(chunk.sizes).toEqual(chunk.records.map(recordSize))
            // The promise holds for what goes out, too (61 bytes of batch header).
            expect(encodeBatch(chunk.records, chunk.sizes, identity, 0, 0).length).toBeLessThanOrEqual(bytes + 61)
            const key = `${chunk.topic}/${chunk.partition}`
            byPartition.set(key, [...(byPartition.get(key) ?? []), ...chunk.records])
          }
        }
        expect(byPartition).toEqual(Map.groupBy(list, ({ topic, partition }) => `${topic}/${partition}`))
      }),
    )
  })

  it('halves keep order; a single record has none', () => {
    const [[chunk] = []] = rounds([1, 2, 3].map((n) => record('t', String(n))))
    const parts = chunk === undefined ? null : halves(chunk)
    expect(parts?.map((part) => part.records.map(({ value }) => String(value)))).toEqual([['1'], ['2', '3']])
    expect(parts === null ? 'none' : halves(parts[0])).toBe(null)
  })

  it('a record without a partition is our own mistake', () => {
    expect(() => rounds([record('t', 'v', { partition: -1 })])).toThrow(/without a partition/)
  })
})
