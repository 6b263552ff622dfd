import { expect, test } from 'vitest'
import { classify } from '../../src/core/classify.ts'
import type { Reply } from '../../src/core/outcome.ts'

const now = Date.UTC(2026, 0, 1)

function response(status: number, more: Partial<Extract<Reply, { t: 'response' }>> = {}): Reply {
  return { t: 'response', status, retryAfter: null, excerpt: Buffer.alloc(0), durationMs: 1, ...more }
}

const retryable = new Set([
  408,
  425,
  429,
  ...Array.from({ length: 100 }, (_, i) => 500 + i).filter((s) => ![501, 505, 506, 508, 510, 511].includes(s)),
])

test('every status from 200 to 999 has exactly the outcome of the table', () => {
  for (let status = 200; status <= 999; status++) {
    const expected =
      status < 300 ? 'delivered' : status === 410 ? 'gone' : retryable.has(status) ? 'retryable' : 'rejected'
    expect(classify(response(status), now).t, String(status)).toBe(expected)
  }
})

test('the body never decides', () => {
  expect(classify(response(200, { excerpt: Buffer.from('{"error":true}') }), now)).toEqual({
    t: 'delivered',
    status: 200,
  })
})

test('Retry-After counts on every retryable status and on no other', () => {
  expect(classify(response(503, { retryAfter: '30' }), now)).toMatchObject({ t: 'retryable', retryAfterMs: 30_000 })
  expect(classify(response(404, { retryAfter: '30' }), now)).toEqual({ t: 'rejected', error: '404', status: 404 })
})

test('a redirect is rejected and says where it pointed', () => {
  expect(classify(response(301, { location: 'http://new.example/' }), now)).toMatchObject({
    t: 'rejected',
    error: '301 redirect, not followed: http://new.example/',
  })
})

test.each(['dns', 'connect', 'tls', 'timeout', 'reset', 'protocol', 'secret', 'local'] as const)(
  '%s without a status is worth another try',
  (failure) => {
    expect(classify({ t: 'failure', class: failure, detail: 'x', durationMs: 1 }, now)).toEqual({
      t: 'retryable',
      error: `${failure}: x`,
      status: null,
      retryAfterMs: null,
    })
  },
)

test('a refused address is blocked, and an interruption spends nothing', () => {
  expect(classify({ t: 'failure', class: 'blocked', detail: 'loopback', durationMs: 1 }, now)).toEqual({
    t: 'blocked',
    error: 'blocked: loopback',
  })
  expect(classify({ t: 'interrupted', detail: 'shutdown', durationMs: 1 }, now)).toEqual({
    t: 'interrupted',
    error: 'shutdown',
  })
})
