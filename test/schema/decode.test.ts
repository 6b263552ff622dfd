import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Delivery, decodeDelivery, encodeDelivery, movedHeaders } from '../../src/core/delivery.ts'
import { headerMap } from '../../src/core/record.ts'
import { rejectedMaxBytes, rejectedRecord } from '../../src/core/rejected.ts'
import { validator } from '../../src/schema/compile.ts'
import {
  decodeAttempt,
  decodeControl,
  decodeLaneState,
  decodeRejected,
  decodeSecret,
  decodeSubscription,
  headerTexts,
} from '../../src/schema/decode.ts'
import * as samples from './samples.ts'

const json = (value: unknown) => Buffer.from(JSON.stringify(value))
const decoders = { decodeSubscription, decodeSecret, decodeControl, decodeLaneState, decodeAttempt }
const [subscription] = samples.subscriptions
const [attempt] = samples.attempts
const [line] = samples.laneStates

describe('a decoder gives a value or a reason and never throws', () => {
  test.each(Object.entries(decoders))('%s: any bytes', (_, decode) => {
    fc.assert(
      fc.property(fc.option(fc.uint8Array({ maxLength: 200 })), (bytes) => {
        const result = decode({ value: bytes === null ? null : Buffer.from(bytes) })
        expect(result.ok || result.reason.length > 0).toBe(true)
      }),
    )
  })

  test.each(Object.entries(decoders))('%s: any JSON', (_, decode) => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.record({ v: fc.jsonValue(), kind: fc.jsonValue() })), (value) => {
        const result = decode({ value: json(value) })
        expect(result.ok || result.reason.length > 0).toBe(true)
      }),
    )
  })

  test('a sample with one property replaced by any JSON', () => {
    const keyed = fc.constantFrom(...Object.keys(subscription as object))
    fc.assert(
      fc.property(keyed, fc.jsonValue(), (key, value) => {
        const result = decodeSubscription({ value: json({ ...subscription, [key]: value }) })
        expect(result.ok || result.reason.includes(key)).toBe(true)
      }),
    )
  })

  test('rejected headers: any bytes under any names', () => {
    const bytes = fc.uint8Array({ maxLength: 30 }).map((b) => Buffer.from(b))
    const names = fc.oneof(
      fc.constantFrom('ht-rejected', 'ht-rejected-offset', '__proto__', 'constructor'),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(names, bytes)), (entries) => {
        const result = decodeRejected({ headers: headerMap(entries) })
        expect(result.ok || result.reason.length > 0).toBe(true)
      }),
    )
  })
})

describe('reasons name field, value and remedy', () => {
  test.each([
    ['missing', decodeSubscription, { ...subscription, url: undefined }, 'url: is missing; add it'],
    [
      'enum',
      decodeSubscription,
      { ...subscription, status: 'off' },
      'status ("off"): is not one of the known values; use active, paused or disabled',
    ],
    ['type', decodeAttempt, { ...attempt, lane: '3' }, 'lane ("3"): has the wrong type; must be integer'],
    ['range', decodeAttempt, { ...attempt, attempt: 0 }, 'attempt (0): is out of range; must be >= 1'],
    ['kind', decodeLaneState, { ...line, kind: 'heap' }, 'kind ("heap"): is not a known kind of record'],
    ['throttle without a rate', decodeControl, { ...samples.controls[1], order: 'throttle' }, 'perSecond: is missing'],
    [
      'version of the wrong type',
      decodeSubscription,
      { ...subscription, v: '1' },
      'v ("1"): has the wrong value; must be 1',
    ],
  ] as const)('%s', (_, decode, value, reason) => {
    const result = decode({ value: json(value) })
    expect(result).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
  })

  test('a secret pasted where a reference belongs is never shown, nor are header values and URL credentials', () => {
    const value = {
      ...subscription,
      url: 'https://u:hunter2@a b',
      headers: { a: 'hunter2\n' },
      secrets: [{ ref: 'whsec_hunter2' }],
    }
    const result = decodeSubscription({ value: json(value) })
    if (result.ok) throw new Error('must be refused')
    expect(result.reason).toContain('secrets[0].ref (***)')
    expect(result.reason).not.toContain('hunter2')
  })
})

describe('unknown versions are told apart from damage', () => {
  test.each([
    ['subscription', decodeSubscription, subscription],
    ['secret', decodeSecret, samples.secrets[0]],
    ['control', decodeControl, samples.controls[0]],
    ['lane-state', decodeLaneState, line],
    ['attempt', decodeAttempt, attempt],
  ] as const)('%s of version 2', (_, decode, value) => {
    expect(decode({ value: json({ ...value, v: 2 }) })).toMatchObject({ ok: false, code: 'unknown-version' })
    expect(decode({ value: json({ v: 2 }) })).toMatchObject({ ok: false, code: 'unknown-version' })
  })

  test('delivery and rejected headers of version 2', () => {
    const delivery = { headers: headerMap([['ht-v', '2']]), value: Buffer.alloc(0) }
    expect(decodeDelivery(delivery)).toMatchObject({ ok: false, code: 'unknown-version' })
    expect(decodeRejected({ headers: headerMap([['ht-rejected', '2']]) })).toMatchObject({
      ok: false,
      code: 'unknown-version',
    })
  })

  test('a property a newer minor added is kept', () => {
    const value = { ...subscription, mood: 'good', retry: { maxAttempts: 2, mood: 'bad' } }
    expect(decodeSubscription({ value: json(value) })).toEqual({ ok: true, value })
  })

  test('a tombstone has its own code', () => {
    expect(decodeSubscription({ value: null })).toMatchObject({ ok: false, code: 'tombstone' })
  })
})

test('a record under a foreign key is refused: it would be compacted with, and deleted by, another', () => {
  const record = { key: Buffer.from('other'), value: json(subscription) }
  expect(decodeSubscription(record)).toMatchObject({ ok: false, reason: expect.stringContaining('other') })
  expect(decodeSubscription({ ...record, key: Buffer.from('sub_orders') }).ok).toBe(true)
})

describe('delivery headers', () => {
  const count = fc.nat({ max: Number.MAX_SAFE_INTEGER })
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
  const optional = fc.option(text)
  const delivery: fc.Arbitrary<Delivery> = fc.record({
    id: text,
    subscriptionId: text,
    tenant: text,
    eventId: text,
    eventType: text,
    contentType: text,
    orderingKey: optional,
    origin: fc.record({
      stream: fc.stringMatching(/^[A-Za-z0-9._-]{1,20}(\/\d{1,3}|:J\d{1,3})$/),
      generation: count,
      offset: count,
    }),
    eventTimeMs: count,
    attempts: count,
    dueMs: fc.option(count),
    lastError: optional,
    traceparent: optional,
    body: fc.uint8Array({ maxLength: 50 }).map((b) => Buffer.from(b)),
  })

  test('any delivery is written as the schema says and read back the same', () => {
    fc.assert(
      fc.property(delivery, (d) => {
        const headers = encodeDelivery(d)
        expect(validator('deliveryHeaders')(headerTexts(headers))).toBe(true)
        expect(decodeDelivery({ headers, value: d.body })).toEqual({ ok: true, value: d })
      }),
    )
  })

  test('a move changes attempts, due time and error, and leaves foreign headers alone', () => {
    fc.assert(
      fc.property(delivery, count, fc.option(count), optional, (d, attempts, dueMs, lastError) => {
        const before = Object.assign(encodeDelivery(d), { 'x-foreign': Buffer.from([255, 0]) })
        const after = movedHeaders(before, { attempts, dueMs, lastError })
        expect(after['x-foreign']).toEqual(Buffer.from([255, 0]))
        expect(decodeDelivery({ headers: after, value: d.body })).toEqual({
          ok: true,
          value: { ...d, attempts, dueMs, lastError },
        })
      }),
    )
  })

  test('what the decoder accepts, the schema accepts', () => {
    const odd = fc.constantFrom('', '-1', '1e3', '0x10', ' 1', '01', '1.5', '9007199254740993', 'NaN', '7')
    const names = fc.constantFrom('ht-due', 'ht-time', 'ht-attempts', 'ht-origin')
    fc.assert(
      fc.property(delivery, names, odd, (d, name, value) => {
        const headers = encodeDelivery(d)
        headers[name] = Buffer.from(name === 'ht-origin' ? `s:${value}:1` : value)
        const decoded = decodeDelivery({ headers, value: d.body })
        expect(decoded.ok).toBe(value === '7')
        if (decoded.ok) expect(validator('deliveryHeaders')(headerTexts(headers))).toBe(true)
        else expect(decoded.reason).toContain(name)
      }),
    )
  })

  test('any bytes under the known names never throw', () => {
    const bytes = fc.uint8Array({ maxLength: 20 }).map((b) => Buffer.from(b))
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('ht-v', 'ht-id', 'ht-origin', 'ht-due', 'ht-time'), bytes), (dict) => {
        const headers = headerMap([...Object.entries(dict), ['ht-v', '1']])
        expect(decodeDelivery({ headers, value: Buffer.alloc(0) }).ok).toBe(false)
      }),
    )
  })
})

describe('rejected records', () => {
  const at = { topic: 'webhooks.events', partition: 3 }
  const why = { code: 'missing-type', reason: 'no type' }

  test('keep key, value and headers of the event and say why and where', () => {
    const headers = headerMap([['x', Buffer.from([255])]])
    const record = { offset: 9, timestampMs: -1, key: Buffer.from('k'), value: Buffer.from([0, 255]), headers }
    const parts = rejectedRecord(record, at, why)
    expect([parts.key, parts.value, parts.headers.x]).toEqual([record.key, record.value, Buffer.from([255])])
    expect(decodeRejected(parts)).toEqual({
      ok: true,
      value: { ...why, topic: at.topic, partition: 3, offset: 9, timestampMs: -1, truncatedFrom: null },
    })
  })

  test('what does not fit one record is cut and marked, never refused', () => {
    const headers = headerMap(Array.from({ length: 300 }, (_, i) => [`h${i}`, Buffer.alloc(4000)] as const))
    const big = { offset: 0, timestampMs: 0, key: Buffer.alloc(100_000), value: Buffer.alloc(3_000_000, 7), headers }
    const parts = rejectedRecord(big, at, { ...why, reason: 'r'.repeat(5000) })
    let bytes = (parts.key?.length ?? 0) + (parts.value?.length ?? 0)
    for (const [name, value] of Object.entries(parts.headers)) bytes += name.length + value.length
    expect(bytes).toBeLessThan(rejectedMaxBytes + 2000)
    expect(parts.value?.length).toBeGreaterThan(300_000)
    expect(decodeRejected(parts)).toMatchObject({ ok: true, value: { truncatedFrom: 3_000_000 } })
  })

  test('a delivery of a newer version is rejected with all of its headers, so that it can be put back', () => {
    const headers = headerMap([
      ['ht-v', '2'],
      ['ht-id', 'x'],
    ])
    const parts = rejectedRecord({ offset: 0, timestampMs: 0, key: null, value: null, headers }, at, why)
    expect(headerTexts(parts.headers)).toMatchObject({ 'ht-v': '2', 'ht-id': 'x', 'ht-rejected': '1' })
  })

  test('an event that came with our own header names can not forge the reason', () => {
    const headers = headerMap([
      ['ht-rejected-reason', 'all fine'],
      ['ht-rejected-truncated', '5'],
    ])
    const parts = rejectedRecord({ offset: 0, timestampMs: 0, key: null, value: null, headers }, at, why)
    expect(parts.value).toBeNull()
    expect(decodeRejected(parts)).toMatchObject({ ok: true, value: { reason: 'no type', truncatedFrom: null } })
  })
})
