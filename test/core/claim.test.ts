import { describe, expect, test } from 'vitest'
import { claimFor, claimHeader, claimProblem, decodeClaim, encodeClaim, isClaimKey } from '../../src/core/claim.ts'
import { decodeDelivery, encodeDelivery } from '../../src/core/delivery.ts'
import { parseEvent } from '../../src/core/event-format.ts'
import { headerMap } from '../../src/core/record.ts'

const body = Buffer.from('x'.repeat(1_000))
const claim = claimFor(body, Date.UTC(2026, 11, 1, 5))
const limits = { maxBytes: 100, maxHeaders: 64, maxClaimBytes: 2_000 }
const at = { topic: 'e', partition: 0 }

function event(header: string, value: Buffer | null = Buffer.alloc(0)) {
  const headers = headerMap([
    ['event-type', 'report.made'],
    [claimHeader, header],
  ])
  return parseEvent({ offset: 1, timestampMs: 0, key: null, value, headers }, at, limits)
}

test('a claim says day, size and digest, and comes back as it was', () => {
  expect(claim).toMatchObject({ key: `2026-12-01/${claim.sha256}`, bytes: 1_000 })
  expect(decodeClaim(encodeClaim(claim), 1_000)).toEqual({ ok: true, value: claim })
  expect(claimProblem(claim, body)).toBeNull()
  expect(claimProblem(claim, Buffer.from('x'.repeat(999)))).toMatch(/999 bytes, claimed were 1000/)
  expect(claimProblem(claim, Buffer.from(`${'x'.repeat(999)}y`))).toMatch(/digest/)
})

describe('keys stay within the store', () => {
  test.each(['a', '2026-12-01/ab', 'a/b.c/d_e=f-'])('%s', (key) => expect(isClaimKey(key)).toBe(true))
  test.each([
    '',
    '.',
    '..',
    '../a',
    'a/../b',
    'a//b',
    '/a',
    'a/',
    'a/.b',
    'a\\b',
    'http://x',
    'a b',
    'a\0',
    'ü',
    'a'.repeat(301),
  ])('not %j', (key) => expect(isClaimKey(key)).toBe(false))
})

test('an event that points to its body has none; its deliveries point there too', () => {
  const parsed = event(encodeClaim(claim))
  expect(parsed).toMatchObject({ ok: true, value: { type: 'report.made', claim, body: Buffer.alloc(0) } })
  expect(event(encodeClaim(claim), null)).toMatchObject({ ok: true })
  const headers = encodeDelivery({
    id: 'm',
    subscriptionId: 's',
    tenant: 't',
    eventId: 'e',
    eventType: 'report.made',
    contentType: 'application/json',
    orderingKey: null,
    origin: { stream: 'e/0', generation: 1, offset: 1 },
    eventTimeMs: 0,
    attempts: 0,
    dueMs: null,
    lastError: null,
    traceparent: null,
    claim,
  })
  expect(decodeDelivery({ headers, value: Buffer.alloc(0) })).toMatchObject({ ok: true, value: { claim } })
})

describe('the dataref of a CloudEvent', () => {
  const pointer = { dataref: claim.key, datarefsize: String(claim.bytes), datarefsha256: claim.sha256 }
  const attributes = { specversion: '1.0', id: '1', source: '/s', type: 'report.made', datacontenttype: 'text/csv' }

  const parse = (headers: [string, string][], value: Buffer | null, more = {}) =>
    parseEvent({ offset: 1, timestampMs: 0, key: null, value, headers: headerMap(headers) }, at, { ...limits, ...more })
  function binary(given: Record<string, string>, value: Buffer | null = null, more = {}) {
    const { datacontenttype, ...rest } = { ...attributes, ...given }
    const headers = Object.entries(rest).map(([name, text]): [string, string] => [`ce_${name}`, text])
    return parse([...headers, ['content-type', datacontenttype]], value, more)
  }
  const structured = (given: object, more = {}) =>
    parse(
      [['content-type', 'application/cloudevents+json; charset=utf-8']],
      Buffer.from(JSON.stringify({ ...attributes, ...given })),
      { maxBytes: 1_000, ...more },
    )

  test('is a pointer into the store, in binary and in structured mode: what is sent is the data, as what it is', () => {
    const read = { ok: true, value: { type: 'report.made', contentType: 'text/csv', claim, body: Buffer.alloc(0) } }
    expect(binary(pointer)).toMatchObject(read)
    expect(binary(pointer, Buffer.alloc(0))).toMatchObject(read)
    expect(structured(pointer)).toMatchObject(read)
    expect(structured({ ...pointer, datarefsize: claim.bytes, data: null })).toMatchObject(read)
  })

  test('is not looked at beside the data itself, wherever it leads', () => {
    const data = Buffer.from('{}')
    const elsewhere = { ...pointer, dataref: 'https://example.com/x' }
    expect(binary(elsewhere, data)).toMatchObject({ ok: true, value: { body: data } })
    expect(binary(elsewhere, data)).not.toHaveProperty('value.claim')
    for (const given of [{ data: 1 }, { data_base64: 'AA==' }]) {
      const whole = structured({ ...elsewhere, ...given })
      expect(whole).toMatchObject({ ok: true, value: { contentType: expect.stringContaining('cloudevents') } })
      expect(whole).not.toHaveProperty('value.claim')
    }
  })

  test.each<[string, Record<string, string>, string]>([
    ['another host', { dataref: 'https://169.254.169.254/latest' }, 'bad-claim'],
    ['another host, without a scheme', { dataref: '//10.0.0.1/x' }, 'bad-claim'],
    ['a file', { dataref: 'file:///etc/passwd' }, 'bad-claim'],
    ['a way out', { dataref: '../../etc/passwd' }, 'bad-claim'],
    ['a way out, encoded', { dataref: '%2e%2e/x' }, 'bad-claim'],
    ['a fragment', { dataref: `${claim.key}#x` }, 'bad-claim'],
    ['no digest', { datarefsha256: '' }, 'bad-claim'],
    ['a size that is none', { datarefsize: '1e3' }, 'bad-claim'],
    ['too large', { datarefsize: '2001' }, 'too-large'],
  ])('is rejected as our own pointer is: %s', (_, given, code) => {
    expect(binary({ ...pointer, ...given })).toMatchObject({ ok: false, code })
    expect(structured({ ...pointer, ...given })).toMatchObject({ ok: false, code })
  })

  test('is rejected where pointers are not taken', () => {
    const refused = { ok: false, code: 'bad-claim', reason: expect.stringContaining('not taken here') }
    expect(binary(pointer, null, { maxClaimBytes: 0 })).toMatchObject(refused)
    expect(structured(pointer, { maxClaimBytes: 0 })).toMatchObject(refused)
  })
})

test.each<[string, string, Buffer | null, string]>([
  ['no JSON', 'x', null, 'bad-claim'],
  ['a URL for a key', encodeClaim({ ...claim, key: 'https://10.0.0.1/x' }), null, 'bad-claim'],
  ['a way out', encodeClaim({ ...claim, key: '../../etc/passwd' }), null, 'bad-claim'],
  ['no digest', JSON.stringify({ key: 'a', bytes: 1 }), null, 'bad-claim'],
  ['a size below zero', encodeClaim({ ...claim, bytes: -1 }), null, 'bad-claim'],
  ['too large', encodeClaim({ ...claim, bytes: 2_001 }), null, 'too-large'],
  ['a body beside it', encodeClaim(claim), Buffer.from('{}'), 'bad-claim'],
])('rejected: %s', (_, header, value, code) => {
  expect(event(header, value)).toMatchObject({ ok: false, code })
})
