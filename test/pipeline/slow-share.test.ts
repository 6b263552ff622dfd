import { expect, test } from 'vitest'
import { Executor } from '../../src/pipeline/executor.ts'
import { SlowShare } from '../../src/pipeline/slow-share.ts'
import type { Work } from '../../src/pipeline/work.ts'
import { FakeClock } from '../sim/fake-clock.ts'

test('fifty endpoints that drip until the time-out take nothing from those that answer, new ones included, and still get their half', async () => {
  const clock = new FakeClock()
  const counts = new Map<string, number>()
  let dripping = 0
  let mostDripping = 0
  const executor: Executor = new Executor(
    {
      maxInFlight: 256,
      maxInFlightBytes: 1e9,
      retryShare: 0.3,
      maxPerSubscription: 32,
      maxPerOrigin: 1000,
      maxPerOriginPerSecond: null,
      leased: () => true,
    },
    clock,
    (id) => ({ origin: `https://${id}.test`, maxInFlight: 32, rate: null, lanes: 1, ready: null }),
    (work) => {
      const id = work.delivery.subscriptionId
      counts.set(id, (counts.get(id) ?? 0) + 1)
      const drips = id.startsWith('drip')
      if (drips) mostDripping = Math.max(mostDripping, ++dripping)
      clock.after(drips ? 13_000 : 20, () => {
        if (drips) dripping--
        executor.finished(work)
      })
    },
  )
  let n = 0
  const offer = (id: string) => {
    const delivery = {
      id: `d${n++}`,
      subscriptionId: id,
      attempts: 0,
      body: Buffer.alloc(0),
      origin: { stream: 'events/0' },
    }
    const owner = { begin: () => 'go' }
    executor.offer({ delivery, bytes: 1, line: null, owner, source: 'deliveries' } as unknown as Work)
  }
  for (let i = 0; i < 50 * 100; i++) offer(`drip${i % 50}`)
  const seconds = 30
  const perSecond = 100
  for (let s = 0; s < seconds; s++) {
    for (let i = 0; i < perSecond; i++) offer(`quick${i % 20}`)
    offer(`new${s}`)
    await clock.advance(1_000)
  }
  await clock.advance(100)
  const of = (prefix: string) => [...counts].reduce((sum, [id, c]) => sum + (id.startsWith(prefix) ? c : 0), 0)
  expect([of('quick'), of('new')]).toEqual([seconds * perSecond, seconds])
  expect(mostDripping).toBeGreaterThanOrEqual(128)
  expect(mostDripping).toBeLessThanOrEqual(230)
  expect(of('drip')).toBeGreaterThan(2 * 128)
})

test('who turns slow is counted as such from then on, who answers quickly again is not', () => {
  const share = new SlowShare(4)
  const posts = [{}, {}, {}, {}] as const
  share.started('a', posts[0], 0)
  expect(share.ended('a', posts[0], 10)).toBe(false)
  for (const post of posts) share.started('a', post, 20)
  expect(share.allows('a', 900)).toBe(true)
  // A second later: all four are slow ones, over the half.
  expect([share.allows('a', 1_020), share.allows('b', 1_020)]).toEqual([false, false])
  expect(share.takeWaiting()).toBeNull()
  expect([share.ended('a', posts[0], 2_000), share.ended('a', posts[1], 2_000)]).toEqual([false, true])
  share.started('a', posts[0], 2_000)
  expect(share.ended('a', posts[0], 2_010)).toBe(true)
  expect([share.takeWaiting(), share.takeWaiting(), share.takeWaiting()]).toEqual(['a', 'b', null])
  expect(share.allows('b', 2_011)).toBe(true)
})

test('room that one who waited does not use is offered to the next', async () => {
  const clock = new FakeClock()
  const started: string[] = []
  const executor: Executor = new Executor(
    {
      maxInFlight: 2,
      maxInFlightBytes: 1e9,
      retryShare: 1,
      maxPerSubscription: 32,
      maxPerOrigin: 1000,
      maxPerOriginPerSecond: null,
      leased: () => true,
    },
    clock,
    () => ({ origin: 'https://a.test', maxInFlight: 32, rate: null, lanes: 1, ready: null }),
    (work) => {
      started.push(work.delivery.subscriptionId)
      clock.after(5_000, () => executor.finished(work))
    },
  )
  const owners = { a: { begin: () => 'go' }, gone: { begin: () => 'go' }, b: { begin: () => 'go' } } as const
  for (const id of ['a', 'gone', 'b'] as const) {
    const delivery = { id, subscriptionId: id, attempts: 0, body: Buffer.alloc(0), origin: { stream: 'events/0' } }
    executor.offer({ delivery, bytes: 1, line: null, owner: owners[id], source: 'deliveries' } as unknown as Work)
  }
  expect(started).toEqual(['a'])
  executor.withdraw(owners.gone as never)
  await clock.advance(5_001)
  expect(started).toEqual(['a', 'b'])
})
