import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RateLimit } from '../../src/core/rate-limit.ts'

test('one may go at once; what was saved up is at most a tenth of a second', () => {
  const limit = new RateLimit(0)
  expect([limit.take(5, 0), limit.take(5, 0)]).toEqual([true, false])
  const taken = (perSecond: number, now: number) => {
    let n = 0
    while (limit.take(perSecond, now)) n++
    return n
  }
  expect(taken(5, 3_600_000)).toBe(1)
  expect(taken(100, 7_200_000)).toBe(10)
})

test('nothing goes at 0 per second, and it is looked at again in a second', () => {
  const limit = new RateLimit(0)
  expect(limit.take(0, 10_000)).toBe(false)
  expect(limit.waitMs(0)).toBe(1_000)
})

test('asked whenever it says, it never gives more than the rate and the saved tenth, nor much less', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.05, max: 2_000, noNaN: true }), fc.integer({ min: 1, max: 60 }), (rate, seconds) => {
      const limit = new RateLimit(0)
      const endMs = seconds * 1_000
      let given = 0
      let nowMs = 0
      while (nowMs < endMs) {
        if (limit.take(rate, nowMs)) given++
        else nowMs += limit.waitMs(rate)
      }
      expect(given).toBeLessThanOrEqual(rate * seconds + Math.max(1, rate / 10) + 1)
      // A wait is a millisecond at the least.
      expect(given).toBeGreaterThanOrEqual(Math.floor(Math.min(rate, 900) * seconds * 0.9))
    }),
    { numRuns: 50 },
  )
})

test('a clock that is set back gives nothing away and does not block for the time it was ahead', () => {
  const limit = new RateLimit(1_000_000)
  expect(limit.take(1, 1_000_000)).toBe(true)
  expect(limit.take(1, 0)).toBe(false)
  expect(limit.take(1, 1_000)).toBe(true)
})
