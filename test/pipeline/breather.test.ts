import { expect, test } from 'vitest'
import { Breather } from '../../src/pipeline/breather.ts'
import { FakeClock } from '../sim/fake-clock.ts'

test('below the bound nobody waits', async () => {
  const breather = new Breather(new FakeClock(), 100)
  for (let i = 0; i < 10; i++) {
    await breather.turn()
    breather.spent(9)
  }
})

test('however many ask at once, at most one piece beyond the bound is done in a turn of the event loop', async () => {
  const clock = new FakeClock()
  const breather = new Breather(clock, 100)
  const perTurn = new Map<number, number>()
  const worker = async () => {
    for (let i = 0; i < 5; i++) {
      await breather.turn()
      const turn = clock.mono()
      perTurn.set(turn, (perTurn.get(turn) ?? 0) + 40)
      breather.spent(40)
    }
  }
  let ended = false
  const all = Promise.all(Array.from({ length: 12 }, worker)).then(() => {
    ended = true
  })
  for (let i = 0; i < 60 && !ended; i++) await clock.advance(1)
  await all
  const records = [...perTurn.values()]
  expect(records.reduce((a, b) => a + b, 0)).toBe(12 * 5 * 40)
  expect(Math.max(...records)).toBeLessThan(100 + 40)
})
