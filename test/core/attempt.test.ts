import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Attempt, encodeAttempt, excerptText, loggableUrl } from '../../src/core/attempt.ts'

describe('excerpt', () => {
  test.each([
    ['text as it is', Buffer.from('über'), 'über'],
    ['what is not UTF-8 becomes U+FFFD', Buffer.from([0x61, 0xff, 0x62]), 'a\ufffdb'],
    ['an incomplete character at the end of a whole body too', Buffer.from([0x61, 0xc3]), 'a\ufffd'],
    ['nothing', Buffer.alloc(0), ''],
  ])('%s', (_, body, text) => {
    expect(excerptText(body)).toBe(text)
  })

  test('a character cut at 4 KiB is left out, not garbled', () => {
    const body = Buffer.from(`${'a'.repeat(4095)}é and more`)
    expect(excerptText(body)).toBe('a'.repeat(4095))
  })

  test('any body gives well-formed text of at most 4096 characters', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000, size: 'max' }), (bytes) => {
        const text = excerptText(Buffer.from(bytes))
        expect(text.length).toBeLessThanOrEqual(4096)
        expect(text.isWellFormed()).toBe(true)
      }),
    )
  })
})

test.each([
  ['https://user:pw@example.com:8443/a/b?token=1#x', 'https://example.com:8443/a/b'],
  ['https://example.com', 'https://example.com/'],
  ['not a url', 'invalid-url'],
])('what may be logged of %s', (url, shown) => {
  expect(loggableUrl(url)).toBe(shown)
})

test('the encoded record is what JSON.stringify makes of it, whatever stands in its texts', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('"', '\\', '\u2028', '\ud800', '\n', 'ok'),
  )
  const maybe = fc.oneof(fc.constant(null), text)
  const count = fc.nat()
  fc.assert(
    fc.property(
      fc.tuple(text, text, text, text, text, text, text, text),
      fc.tuple(maybe, count, count, fc.boolean()),
      ([deliveryId, subscriptionId, tenant, eventId, eventType, excerpt, url, origin], [error, n, dueMs, changed]) => {
        const attempt: Attempt = {
          ...{
            v: 1,
            deliveryId,
            subscriptionId,
            tenant,
            eventId,
            eventType,
            attempt: n,
            startedAtMs: n,
            durationMs: n,
          },
          ...{
            status: changed ? 200 : null,
            error,
            errorClass: changed ? 'timeout' : null,
            outcome: changed ? null : 'delivered',
          },
          ...{
            settlement: 'done',
            dueMs: changed ? dueMs : null,
            excerpt,
            url,
            urlChanged: changed || undefined,
            lane: n,
            origin,
          },
        }
        expect(encodeAttempt(attempt).toString()).toBe(Buffer.from(JSON.stringify(attempt)).toString())
      },
    ),
  )
})
