import { expect, test } from 'vitest'
import { Breather } from '../../src/pipeline/breather.ts'
import type { Clock } from '../../src/ports.ts'

/** Timers that only fire when the test lets the event loop turn. */
function loop() {
  const waiting: (() => void)[] = []
  const clock = { after: (_: number, fn: () => void) => waiting.push(fn) } as unknown as Clock
  const turn = async () => {
    for (const fn of waiting.splice(0)) fn()
    await new Promise(setImmediate)
  }
  return { clock, turn, waiting }
}

test('below the bound nobody waits', async () => {
  const { clock, waiting } = loop()
  const breather = new Breather(clock, 100)
  for (let i = 0; i < 10; i++) {
    await breather.turn(5)
    breather.more(4)
  }
  expect(waiting).toEqual([])
})

test('however many ask at once, at most one piece beyond the bound is done in a turn of the event loop', async () => {
  const { clock, turn, waiting } = loop()
  const breather = new Breather(clock, 100)
  let done = 0
  const worker = async () => {
    for (let i = 0; i < 5; i++) {
      await breather.turn(40)
      done += 40
      breather.more(0)
    }
  }
  const all = Promise.all(Array.from({ length: 12 }, worker))
  await new Promise(setImmediate)
  const perTurn: number[] = [done]
  for (let before = done; done < 12 * 5 * 40 && perTurn.length < 100; before = done) {
    await turn()
    perTurn.push(done - before)
  }
  await all
  expect(done).toBe(12 * 5 * 40)
  expect(Math.max(...perTurn)).toBeLessThan(100 + 40)
  expect(waiting.length).toBeLessThanOrEqual(1)
})
