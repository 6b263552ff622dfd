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
