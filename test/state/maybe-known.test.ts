import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MaybeKnown } from '../../src/state/maybe-known.ts'

test('what was added is known, whatever it looks like', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), (texts) => {
      const known = new MaybeKnown(12)
      for (const text of texts) known.add(text)
      expect(texts.filter((text) => !known.has(text))).toEqual([])
    }),
  )
})

test('of what was not added hardly anything is taken for known: 7 bits for each', () => {
  const known = new MaybeKnown(17)
  const count = 2 ** 17 / 7
  for (let n = 0; n < count; n++) known.add(`msg_${n}`)
  let wrong = 0
  for (let n = 0; n < 10_000; n++) if (known.has(`other_${n}`)) wrong++
  expect(wrong / 10_000).toBeLessThan(0.06)
  expect(wrong).toBeGreaterThan(0)
})
