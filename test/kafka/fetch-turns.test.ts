import { expect, test } from 'vitest'
import { FetchTurns } from '../../src/kafka/fetch-turns.ts'
import { FakeClock } from '../sim/fake-clock.ts'

const hot = [0, 1].map((partition) => ({ topic: 'deliveries', partition }))
const cold = [0, 1].map((partition) => ({ topic: 'retry', partition }))
const all = [...hot, ...cold]

test('while nothing comes, everything is asked for, and the fetch may wait as long as it may', () => {
  const turns = new FetchTurns(new FakeClock(), 100)
  for (let i = 0; i < 5; i++) expect(turns.choose(1, all)).toEqual({ first: [], partitions: all, maxWaitMs: 100 })
})

test('beside a busy topic the quiet ones are asked for every 100 ms, and a fetch never waits longer than until then', async () => {
  const clock = new FakeClock()
  const turns = new FetchTurns(clock, 100)
  const whole: number[] = []
  for (let ms = 0; ms < 1_000; ms += 5) {
    turns.came('deliveries')
    const { first, partitions, maxWaitMs } = turns.choose(1, all)
    expect(partitions).toEqual(hot)
    if (first.length > 0) {
      // In front: a full response would serve the busy ones only.
      expect(first).toEqual(cold)
      whole.push(clock.mono())
    } else {
      expect(clock.mono() + maxWaitMs).toBe((whole.at(-1) ?? Number.NaN) + 100)
    }
    await clock.advance(5)
  }
  expect(whole).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900])
})

test('a topic is busy for a second after its last record; what is all busy or all quiet is asked for whole', async () => {
  const clock = new FakeClock()
  const turns = new FetchTurns(clock, 100)
  turns.choose(1, all)
  turns.came('deliveries')
  expect(turns.choose(1, all).partitions).toEqual(hot)
  expect(turns.choose(1, cold).partitions).toEqual(cold)
  expect(turns.choose(1, hot).partitions).toEqual(hot)
  turns.came('retry')
  expect(turns.choose(1, all).partitions).toEqual(all)
  await clock.advance(1_000)
  expect(turns.choose(1, all).partitions).toEqual(all)
})

test('each broker has turns of its own', () => {
  const turns = new FetchTurns(new FakeClock(), 100)
  turns.came('deliveries')
  expect([1, 2, 1, 2].map((node) => turns.choose(node, all).first.length)).toEqual([2, 2, 0, 0])
})
