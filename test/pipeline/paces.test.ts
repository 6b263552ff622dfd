import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TokenBucket } from '../../src/core/token-bucket.ts'
import { Executor } from '../../src/pipeline/executor.ts'
import type { Work, WorkOwner } from '../../src/pipeline/work.ts'
import { FakeClock } from '../sim/fake-clock.ts'

interface Rates {
  readonly [subscriptionId: string]: { perSecond: number; burst?: number } | null
}

/** An executor whose POSTs take `postMs`, with every start noted. */
function world(
  rates: Rates,
  more: { perOrigin?: number; lanes?: number; postMs?: number; ready?: () => boolean } = {},
) {
  const clock = new FakeClock()
  const starts: { id: string; atMs: number }[] = []
  let asked = 0
  const executor: Executor = new Executor(
    {
      maxInFlight: 4,
      maxInFlightBytes: 1e9,
      retryShare: 0.5,
      maxPerSubscription: 4,
      maxPerOrigin: 1000,
      maxPerOriginPerSecond: more.perOrigin ?? null,
      leased: () => true,
    },
    clock,
    (id) => {
      asked++
      return {
        origin: 'https://a.test',
        maxInFlight: 4,
        rate: rates[id] ?? null,
        lanes: more.lanes ?? 1,
        ready: more.ready ?? null,
      }
    },
    (work) => {
      starts.push({ id: work.delivery.subscriptionId, atMs: clock.mono() })
      clock.after(more.postMs ?? 1, () => executor.finished(work))
    },
  )
  const owner: WorkOwner = { begin: () => 'go' }
  let n = 0
  const offer = (id: string, by: WorkOwner = owner, source = 'deliveries') => {
    const delivery = {
      id: `d${n++}`,
      subscriptionId: id,
      attempts: 0,
      body: Buffer.alloc(0),
      origin: { stream: 'events/0' },
    }
    executor.offer({ delivery, bytes: 1, line: null, owner: by, source } as unknown as Work)
  }
  const of = (id: string) => starts.filter((start) => start.id === id)
  return { clock, executor, offer, starts, of, asked: () => asked }
}

test('in no span of time does a bucket let more through than its rate times the span plus its burst, and no wait is in vain', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 5000, noNaN: true }),
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.double({ min: 0, max: 400, noNaN: true }), { maxLength: 200 }),
      (perSecond, burst, gaps) => {
        const bucket = new TokenBucket(perSecond, burst, 0)
        const taken: number[] = []
        let nowMs = 0
        for (const gap of gaps) {
          const waitMs = bucket.waitMs(nowMs)
          if (waitMs > 0) {
            nowMs += Math.max(gap, waitMs)
            if (bucket.waitMs(nowMs) > 1e-6) return false
          } else nowMs += 0
          if (bucket.waitMs(nowMs) === 0) {
            bucket.take()
            taken.push(nowMs)
          }
          nowMs += gap / 10
        }
        return taken.every((from, i) =>
          taken.every((to, j) => j < i || j - i + 1 <= ((to - from) / 1000) * perSecond + burst + 1e-3),
        )
      },
    ),
  )
})

test('a limited subscription gets its rate, others all of theirs: it waits in no slot and asks nobody', async () => {
  const { clock, offer, of, asked, executor } = world({ slow: { perSecond: 5 }, free: null })
  for (let i = 0; i < 1000; i++) offer('slow')
  for (let i = 0; i < 4000; i++) offer('free')
  await clock.advance(1_500)
  // Four slots of 1 ms.
  expect(of('free').length).toBe(4000)
  const before = asked()
  await clock.advance(8_500)
  expect(of('slow').length).toBeGreaterThanOrEqual(50)
  expect(of('slow').length).toBeLessThanOrEqual(51)
  expect(asked() - before).toBeLessThan(500)
  expect(executor.inFlight).toBeLessThanOrEqual(1)
  // What waits for its rate is no sign of a stall.
  expect([executor.ready, executor.startable]).toEqual([1000 - of('slow').length, 0])
})

test('retries count for the rate as first attempts do', async () => {
  const { clock, offer, of } = world({ s: { perSecond: 10, burst: 1 } })
  for (let i = 0; i < 200; i++) offer('s', undefined, i % 2 === 0 ? 'tier' : 'deliveries')
  await clock.advance(5_000)
  expect(of('s').length).toBeGreaterThanOrEqual(50)
  expect(of('s').length).toBeLessThanOrEqual(51)
})

test('after a pause at most the burst comes at once', async () => {
  const { clock, offer, starts } = world({ s: { perSecond: 2, burst: 4 } })
  await clock.advance(60_000)
  offer('s')
  await clock.advance(60_000)
  starts.length = 0
  for (let i = 0; i < 20; i++) offer('s')
  await clock.advance(100)
  expect(starts.length).toBe(4)
  await clock.advance(2_000)
  expect(starts.length).toBe(8)
})

test('a spread subscription gets its rate from all its lanes together, and a part of it where only a part is owned', async () => {
  const lanes = [0, 1, 2, 3].map((): WorkOwner => ({ begin: () => 'go' }))
  const all = world({ s: { perSecond: 40 } }, { lanes: 4 })
  for (let i = 0; i < 2000; i++) all.offer('s', lanes[i % 4] as WorkOwner)
  await all.clock.advance(10_000)
  expect(all.of('s').length).toBeGreaterThan(380)
  expect(all.of('s').length).toBeLessThanOrEqual(404)
  const half = world({ s: { perSecond: 40 } }, { lanes: 4 })
  for (let i = 0; i < 2000; i++) half.offer('s', lanes[i % 2] as WorkOwner)
  await half.clock.advance(10_000)
  expect(half.of('s').length).toBeGreaterThan(190)
  expect(half.of('s').length).toBeLessThanOrEqual(202)
})

test('an origin gets no more than its cap from all subscriptions together, and each has its turn', async () => {
  const { clock, offer, of, starts } = world({ a: null, b: null, c: { perSecond: 1 } }, { perOrigin: 20 })
  for (let i = 0; i < 1000; i++) offer('a')
  for (let i = 0; i < 1000; i++) offer('b')
  for (let i = 0; i < 10; i++) offer('c')
  await clock.advance(10_000)
  expect(starts.length).toBeGreaterThanOrEqual(198)
  expect(starts.length).toBeLessThanOrEqual(202)
  expect(Math.abs(of('a').length - of('b').length)).toBeLessThan(20)
  expect(of('c').length).toBeGreaterThanOrEqual(8)
})

test('a subscription whose token is being fetched holds no slot and goes on when it is woken', async () => {
  let ready = false
  const { clock, offer, of, executor } = world({ s: null }, { ready: () => ready })
  for (let i = 0; i < 10; i++) offer('s')
  await clock.advance(5_000)
  expect([of('s').length, executor.inFlight]).toEqual([0, 0])
  ready = true
  executor.wake('s')
  await clock.advance(100)
  expect(of('s').length).toBe(10)
})
