import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DeadCredit } from '../../src/core/dead-credit.ts'

test('without a success no more die than the credit, whatever is tried; each subscription has its own', () => {
  const credit = new DeadCredit(3)
  expect([1, 2, 3, 4, 5].map(() => credit.spend('a'))).toEqual([true, true, true, false, false])
  expect(credit.spend('b')).toBe(true)
})

test('a credit of 0: nothing dies of exhaustion', () => {
  const credit = new DeadCredit(0)
  credit.earn('a')
  expect(credit.spend('a')).toBe(false)
})

test('deaths never exceed the credit and the successes before them; full credit is forgotten', () => {
  const steps = fc.array(fc.constantFrom('earn', 'spend'), { maxLength: 200 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), steps, (most, log) => {
      const credit = new DeadCredit(most)
      let left = most
      for (const step of log) {
        if (step === 'earn') {
          credit.earn('a')
          left = Math.min(most, left + 1)
        } else {
          expect(credit.spend('a')).toBe(left > 0)
          left = Math.max(0, left - 1)
        }
        expect(credit.size).toBeLessThanOrEqual(1)
      }
      for (let i = 0; i < most; i++) credit.earn('a')
      expect(credit.size).toBe(0)
    }),
  )
})
