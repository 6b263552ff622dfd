import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EventResult } from '../../src/core/event.ts'
import { parseEvent } from '../../src/core/event-format.ts'
import { headerMap, type InRecord } from '../../src/core/record.ts'

const at = { topic: 'webhooks.events', partition: 3 }
const limits = { maxBytes: 1000, maxHeaders: 20 }
const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

function read(
  headers: Record<string, string | Buffer>,
  value: string | Buffer | null = '{}',
  more: Partial<InRecord> = {},
) {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  const record = {
    offset: 127,
    timestampMs: 5000,
    key: null,
    value: bytes,
    headers: headerMap(Object.entries(headers)),
    ...more,
  }
  return parseEvent(record, at, limits)
}

function event(result: EventResult) {
  if (!result.ok) throw new Error(result.reason)
  return result.value
}

const binary = { ce_specversion: '1.0', ce_id: 'A-1', ce_source: '/shop', ce_type: 'order.created' }
const structuredType = { 'content-type': 'application/cloudevents+json' }
const structuredBody = { specversion: '1.0', id: 'A-1', source: '/shop', type: 'order.created' }

describe('CloudEvents binary mode', () => {
  test('attributes from ce_ headers, the body untouched', () => {
    const headers = {
      ...binary,
      ce_partitionkey: 'k1',
      ce_tenant: 'acme',
      'content-type': 'text/xml',
      traceparent: trace,
    }
    const body = Buffer.from([0, 255, 10])
    expect(event(read(headers, body))).toEqual({
      id: 'A-1',
      source: '/shop',
      identity: { t: 'cloudevent', source: '/shop', id: 'A-1' },
      type: 'order.created',
      tenant: 'acme',
      orderingKey: 'k1',
      contentType: 'text/xml',
      timeMs: 5000,
      traceparent: trace,
      body,
    })
  })

  test.each([
    ['specversion 0.3', { ...binary, ce_specversion: '0.3' }, 'unsupported-format'],
    ['no id', without(binary, 'ce_id'), 'missing-attribute'],
    ['no source', without(binary, 'ce_source'), 'missing-attribute'],
    ['no specversion', without(binary, 'ce_specversion'), 'missing-attribute'],
    ['no type', without(binary, 'ce_type'), 'missing-type'],
    ['an empty source', { ...binary, ce_source: '' }, 'bad-source'],
  ])('%s is refused', (_, headers, code) => {
    expect(read(headers)).toMatchObject({ ok: false, code })
  })
})

describe('CloudEvents structured mode', () => {
  test.each([
    'application/cloudevents+json',
    'application/cloudevents+json; charset=UTF-8',
    'Application/CloudEvents+JSON;charset="utf-8"',
  ])('%s: attributes from the JSON, the body is all of it', (contentType) => {
    const text = JSON.stringify({
      ...structuredBody,
      partitionkey: 'k',
      tenant: 'acme',
      data: { a: 1 },
      traceparent: trace,
    })
    const found = event(read({ 'content-type': contentType }, text))
    expect(found).toMatchObject({
      identity: { t: 'cloudevent', source: '/shop', id: 'A-1' },
      type: 'order.created',
      orderingKey: 'k',
      tenant: 'acme',
      contentType,
      traceparent: trace,
    })
    expect(found.body.toString()).toBe(text)
  })

  test.each([
    ['not JSON', '{', 'bad-json'],
    ['not an object', '[]', 'bad-json'],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'bad-json'],
    ['no source', JSON.stringify({ ...structuredBody, source: null }), 'missing-attribute'],
    ['a number for an id', JSON.stringify({ ...structuredBody, id: 7 }), 'bad-id'],
    ['half a surrogate pair', JSON.stringify({ ...structuredBody, id: '\ud800' }), 'bad-id'],
    ['no type', JSON.stringify(without(structuredBody, 'type')), 'missing-type'],
  ])('%s is refused', (_, value, code) => {
    expect(read(structuredType, value)).toMatchObject({ ok: false, code })
  })

  test.each([
    'application/cloudevents-batch+json',
    'application/cloudevents+avro',
    'application/cloudevents+json; charset=utf-16',
  ])('%s is not read', (contentType) => {
    expect(read({ 'content-type': contentType }, '[]')).toMatchObject({ ok: false, code: 'unsupported-format' })
  })
})

describe('Hooktide headers', () => {
  test('type is enough; the body is never parsed', () => {
    expect(event(read({ 'event-type': 'order.created' }, 'not { JSON'))).toMatchObject({
      id: 'webhooks.events/3/127',
      source: null,
      identity: { t: 'position', topic: 'webhooks.events', partition: 3, offset: 127 },
      tenant: 'default',
      orderingKey: null,
      contentType: 'application/json',
      traceparent: null,
    })
  })

  test('an id makes the event the same wherever it stands in its topic', () => {
    const headers = { 'event-type': 'a', 'event-id': 'evt 1 – ünï', 'event-tenant': 'acme', 'event-key': 'k' }
    expect(event(read(headers))).toMatchObject({
      id: 'evt 1 – ünï',
      identity: { t: 'given', topic: 'webhooks.events', id: 'evt 1 – ünï' },
      tenant: 'acme',
      orderingKey: 'k',
    })
  })

  test('an id without a type is missing its type, not an envelope', () => {
    expect(read({ 'event-id': 'x' }, '{"type":"a"}')).toMatchObject({ ok: false, code: 'missing-type' })
  })
})

describe('JSON envelope', () => {
  test('type, id, tenant and key from the value, which is delivered as it is', () => {
    const text = ' {"type":"a.b","id":"1","tenant":"acme","key":"k","data":[1]}\n'
    const found = event(read({}, text))
    expect(found).toMatchObject({ type: 'a.b', id: '1', tenant: 'acme', orderingKey: 'k', source: null })
    expect(found.body.toString()).toBe(text)
  })

  test.each([
    ['no type', '{"id":"1"}', 'missing-type'],
    ['type is a number', '{"type":1}', 'bad-type'],
    ['not JSON', 'hello', 'bad-json'],
    ['empty', '', 'bad-json'],
    ['type only in the prototype chain', '{"__proto__":{"type":"a"}}', 'missing-type'],
    ['deeply nested', '['.repeat(900), 'bad-json'],
  ])('%s is refused with what to do', (_, value, code) => {
    const result = read({}, value)
    expect(result).toMatchObject({ ok: false, code })
    expect(result.ok ? '' : result.reason).toMatch(/event-type|must be/)
  })
})

describe('ordering key', () => {
  const type = { 'event-type': 'a' }
  test.each([
    ['the record key where none is named', type, Buffer.from('ключ'), 'ключ'],
    ['the named one over the record key', { ...type, 'event-key': 'n' }, Buffer.from('r'), 'n'],
    ['none for a key that is not UTF-8', type, Buffer.from([0xff]), null],
    ['none for an empty key', type, Buffer.alloc(0), null],
    ['none without a key', type, null, null],
  ])('%s', (_, headers, key, wanted) => {
    expect(event(read(headers, '{}', { key })).orderingKey).toBe(wanted)
  })

  test('a very long record key is hashed: equal keys stay equal, different ones different', () => {
    const keyOf = (key: Buffer) => event(read(type, '{}', { key })).orderingKey
    const [a, b] = [Buffer.alloc(2000, 'a'), Buffer.alloc(2001, 'a')]
    expect(keyOf(a)).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(keyOf(a)).toBe(keyOf(Buffer.from(a)))
    expect(keyOf(a)).not.toBe(keyOf(b))
  })
})

describe('limits and bad input', () => {
  const type = { 'event-type': 'a' }
  test.each([
    ['null value', type, null, 'null-value'],
    ['too large', type, 'x'.repeat(1001), 'too-large'],
    [
      'too many headers',
      { ...type, ...Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`h${i}`, ''])) },
      '',
      'too-many-headers',
    ],
    ['header not UTF-8', { 'event-type': Buffer.from([0xc3, 0x28]) }, '', 'not-utf8'],
    ['empty type', { 'event-type': '' }, '', 'bad-type'],
    ['type of 129 characters', { 'event-type': 'x'.repeat(129) }, '', 'bad-type'],
    ['type with a space', { 'event-type': 'a b' }, '', 'bad-type'],
    ['type *', { 'event-type': '*' }, '', 'bad-type'],
    ['id with a line break', { ...type, 'event-id': 'a\nb' }, '', 'bad-id'],
    ['id of 257 characters', { ...type, 'event-id': 'x'.repeat(257) }, '', 'bad-id'],
    ['tenant with a slash', { ...type, 'event-tenant': 'a/b' }, '', 'bad-tenant'],
    ['key with a NUL', { ...type, 'event-key': 'a\0' }, '', 'bad-key'],
    ['content type with a line break', { ...type, 'content-type': 'a/b\r\nx: y' }, '', 'bad-content-type'],
    ['content type without a slash', { ...type, 'content-type': 'json' }, '', 'bad-content-type'],
  ])('%s', (_, headers, value, code) => {
    const result = read(headers as Record<string, string>, value)
    expect(result).toMatchObject({ ok: false, code })
    expect(result.ok ? 0 : result.reason.length).toBeLessThan(400)
  })

  test('at the limits an event is read', () => {
    const headers = { 'event-type': 'x'.repeat(128), 'event-id': 'x'.repeat(256) }
    expect(read(headers, 'x'.repeat(1000)).ok).toBe(true)
    expect(read(type, Buffer.alloc(0)).ok).toBe(true)
  })

  test.each(['nonsense', `ff${trace.slice(2)}`, trace.toUpperCase(), Buffer.from([0xff])])(
    'a broken trace context (%s) is dropped, the event is not',
    (traceparent) => {
      expect(event(read({ ...type, traceparent })).traceparent).toBeNull()
    },
  )

  test('a record without a timestamp has time 0', () => {
    expect(event(read(type, '{}', { timestampMs: -1 })).timeMs).toBe(0)
  })
})

describe('any record is an event or a reason', () => {
  const names = fc.oneof(
    fc.constantFrom(
      'event-type',
      'event-id',
      'event-key',
      'event-tenant',
      'content-type',
      'ce_specversion',
      'ce_type',
      'ce_id',
      'ce_source',
      'traceparent',
      '__proto__',
    ),
    fc.string(),
  )
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((b) => Buffer.from(b)),
    fc.constantFrom('1.0', 'a.b', 'application/cloudevents+json').map((t) => Buffer.from(t)),
    fc.string({ unit: 'binary' }).map((t) => Buffer.from(t)),
  )
  const value = fc.oneof(
    bytes,
    fc.json().map((t) => Buffer.from(t)),
    fc
      .dictionary(fc.constantFrom('type', 'id', 'source', 'specversion', 'key'), fc.jsonValue())
      .map((d) => Buffer.from(JSON.stringify(d))),
  )

  test('never an exception; an event keeps its bytes and its limits', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(names, bytes), { maxLength: 8 }),
        fc.option(value),
        fc.option(bytes),
        (headers, body, key) => {
          const record = { offset: 1, timestampMs: 1, key, value: body, headers: headerMap(headers) }
          const result = parseEvent(record, at, limits)
          if (!result.ok) {
            expect(result.reason).not.toBe('')
            return
          }
          expect(result.value.body).toBe(body)
          expect(result.value.type).toMatch(/^[\x21-\x7e]{1,128}$/)
          expect(result.value.id).not.toMatch(/[\p{Cc}\p{Cs}]/u)
          expect(result.value.contentType).toMatch(/^[\x20-\x7e]+$/)
        },
      ),
      { numRuns: 3000 },
    )
  })
})

function without(object: Record<string, string>, key: string): Record<string, string> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key))
}
