import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseHttpDate, parseRetryAfter, pickRetryAfter, retryAfterCapMs } from '../../src/core/retry-after.ts'

const now = Date.UTC(1994, 10, 6, 8, 0, 0)

test.each([
  ['120', 120_000],
  [' 120\t', 120_000],
  ['00120', 120_000],
  ['7200', 7_200_000],
  ['7201', retryAfterCapMs],
  ['9'.repeat(400), retryAfterCapMs],
  ['Sun, 06 Nov 1994 08:01:00 GMT', 60_000],
  ['Sunday, 06-Nov-94 08:01:00 GMT', 60_000],
  ['Sun Nov  6 08:01:00 1994', 60_000],
  ['Fri, 31 Dec 9999 23:59:59 GMT', retryAfterCapMs],
])('%j asks for %d ms', (value, ms) => {
  expect(parseRetryAfter(value, now)).toBe(ms)
})

test.each([
  '0',
  '000',
  '',
  ' ',
  '-5',
  '+5',
  '1.5',
  '1e3',
  '0x10',
  '120s',
  '1 0',
  '10, 20',
  'NaN',
  'Infinity',
  '١٢٠',
  'soon',
  '2099-01-01T00:00:00Z',
  'Sun, 06 Nov 1994 07:59:00 GMT',
  'Sun, 06 Nov 1994 08:01:00 UTC',
  'Sun, 06 Nov 1994 08:01:00 +0000',
  'sun, 06 nov 1994 08:01:00 gmt',
  'Sun, 32 Nov 1994 08:01:00 GMT',
  'Sun, 31 Feb 2099 08:01:00 GMT',
  'Sun, 06 Nov 1994 24:00:00 GMT',
  'Sun, 6 Nov 1994 08:01:00 GMT',
])('%j is no hint', (value) => {
  expect(parseRetryAfter(value, now)).toBeNull()
})

test('a two-digit year lies within 50 years of now', () => {
  const in2026 = Date.UTC(2026, 0, 1)
  expect(parseHttpDate('Monday, 01-Jan-27 00:00:00 GMT', in2026)).toBe(Date.UTC(2027, 0, 1))
  expect(parseHttpDate('Monday, 01-Jan-90 00:00:00 GMT', in2026)).toBe(Date.UTC(1990, 0, 1))
  expect(parseHttpDate('Monday, 01-Jan-00 00:00:00 GMT', Date.UTC(2098, 0, 1))).toBe(Date.UTC(2100, 0, 1))
})

test('of several lines the longest usable one counts', () => {
  expect(pickRetryAfter(undefined, now)).toBeNull()
  expect(pickRetryAfter('60', now)).toBe('60')
  expect(pickRetryAfter(['10', 'soon', '60', '20'], now)).toBe('60')
})

test('whatever stands there, the hint is none or between 1 ms and the cap', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), fc.nat(), (value, time) => {
      const ms = parseRetryAfter(value, time)
      expect(ms === null || (ms >= 1 && ms <= retryAfterCapMs)).toBe(true)
    }),
  )
})

test('every moment survives its three spellings', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2_000_000_000 }), (seconds) => {
      const date = new Date(seconds * 1000)
      const imf = date.toUTCString()
      const [day, dd, mon, year, time] = imf.split(/,? /)
      expect(parseHttpDate(imf, now)).toBe(seconds * 1000)
      expect(parseHttpDate(`${day} ${mon} ${String(Number(dd)).padStart(2)} ${time} ${year}`, now)).toBe(seconds * 1000)
    }),
  )
})
