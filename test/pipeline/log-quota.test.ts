import { expect, test } from 'vitest'
import { LogQuota } from '../../src/pipeline/log-quota.ts'
import { FakeClock } from '../sim/fake-clock.ts'

test('so many a second, and the next line says how many were left out: none is forgotten', async () => {
  const clock = new FakeClock()
  const quota = new LogQuota(clock, 3)
  const ask = () => Array.from({ length: 5 }, () => quota.admit())
  expect(ask()).toEqual([0, 0, 0, null, null])
  await clock.advance(999)
  expect(ask()).toEqual([null, null, null, null, null])
  await clock.advance(1)
  expect(ask()).toEqual([7, 0, 0, null, null])
  await clock.advance(10_000)
  expect(quota.admit()).toBe(2)
})
