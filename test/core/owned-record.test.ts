import fc from 'fast-check'
import { expect, test } from 'vitest'
import { headerMap, type InRecord, ownedRecord } from '../../src/core/record.ts'

const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
const record: fc.Arbitrary<InRecord> = fc.record({
  offset: fc.nat(),
  timestampMs: fc.nat(),
  key: fc.option(bytes),
  value: fc.option(bytes),
  headers: fc.array(fc.tuple(fc.constantFrom('a', 'b', 'ht-id', 'constructor', ''), bytes)).map(headerMap),
})

test('an owned record is the record, whatever was owned before it', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), (records) => {
      for (const [i, owned] of records.map(ownedRecord).entries()) {
        const { offset, timestampMs, key, value, headers } = records[i] as InRecord
        expect([owned.offset, owned.timestampMs, owned.key, owned.value]).toEqual([offset, timestampMs, key, value])
        expect(Object.entries(owned.headers)).toEqual(Object.entries(headers))
        expect(Object.getPrototypeOf(owned.headers)).toBe(null)
      }
    }),
  )
})

test('an owned record keeps nothing of the response it was read from', () => {
  const response = Buffer.alloc(1000, 'x')
  const part = response.subarray(10, 20)
  const owned = ownedRecord({ offset: 1, timestampMs: 2, key: part, value: part, headers: headerMap([['a', part]]) })
  response.fill('y')
  for (const copy of [owned.key, owned.value, owned.headers.a]) {
    expect(copy?.toString()).toBe('xxxxxxxxxx')
    expect(copy?.buffer).not.toBe(response.buffer)
  }
})
