import { describe, expect, test } from 'vitest'
import type { Reply } from '../../src/core/outcome.ts'
import { Circuits } from '../../src/pipeline/circuits.ts'
import { FakeClock } from '../sim/fake-clock.ts'

const policy = { failures: 2, failureRate: 1, minSamples: 50, windowMs: 10_000, openMs: 1_000, maxOpenMs: 8_000 }

function circuits() {
  const clock = new FakeClock()
  const changed: string[] = []
  const observer = { log() {}, count() {}, time() {} }
  const all = new Circuits({
    clock,
    observer,
    policy,
    changed: (c, closed) => changed.push(`${c} ${closed}`),
    opened() {},
  })
  return { all, clock, changed }
}

const status = (status: number): Reply => ({
  t: 'response',
  status,
  retryAfter: null,
  excerpt: Buffer.alloc(0),
  durationMs: 1,
})
const failure = (kind: Extract<Reply, { t: 'failure' }>['class']): Reply => ({
  t: 'failure',
  class: kind,
  detail: kind,
  durationMs: 1,
})

describe('what counts against whom', () => {
  test.each([
    { reply: status(503), sub: true, origin: false },
    { reply: status(408), sub: true, origin: false },
    { reply: status(429), sub: false, origin: false },
    { reply: status(404), sub: false, origin: false },
    { reply: status(410), sub: false, origin: false },
    { reply: failure('connect'), sub: true, origin: true },
    { reply: failure('dns'), sub: true, origin: true },
    { reply: failure('tls'), sub: true, origin: true },
    { reply: failure('timeout'), sub: true, origin: true },
    { reply: failure('blocked'), sub: false, origin: false },
    { reply: failure('secret'), sub: false, origin: false },
    { reply: failure('local'), sub: false, origin: false },
    { reply: { t: 'interrupted', detail: '', durationMs: 1 } as const, sub: false, origin: false },
  ])('$reply.t $reply.status $reply.class: subscription $sub, origin $origin', ({ reply, sub, origin }) => {
    const { all } = circuits()
    const changes = [all.ended('s', 'https://o', reply), all.ended('s', 'https://o', reply)].flat()
    expect(changes.map(({ circuit }) => circuit)).toEqual([
      ...(sub ? ['sub s'] : []),
      ...(origin ? ['origin https://o'] : []),
    ])
    expect(all.allows('s', 'https://elsewhere')).toBe(!sub)
    expect(all.allows('neighbour', 'https://o')).toBe(!origin)
    all.stop()
  })
})

test('a thousand subscriptions to one dead host are one circuit', () => {
  const { all } = circuits()
  for (const i of [0, 1]) all.ended(`s${i}`, 'https://o', failure('connect'))
  for (let i = 0; i < 1_000; i++) expect(all.allows(`s${i}`, 'https://o')).toBe(false)
  expect(all.open).toBe(1)
  all.stop()
})

test('when its time is over whoever waits is asked once, and the probe that succeeds lets all go', async () => {
  const { all, clock, changed } = circuits()
  for (let i = 0; i < 2; i++) all.ended('s', 'https://o', status(503))
  await clock.advance(1_300)
  expect(changed).toEqual(['sub s false'])
  expect(all.allows('s', 'https://o')).toBe(true)
  all.started('s', 'https://o')
  expect(all.allows('s', 'https://o')).toBe(false)
  expect(all.ended('s', 'https://o', status(200))).toEqual([{ circuit: 'sub s', mark: null }])
  await clock.advance(1)
  expect(changed).toEqual(['sub s false', 'sub s true'])
  expect([all.open, all.allows('s', 'https://o'), clock.pending]).toEqual([0, true, 0])
})

test('as a predecessor left it: closed to all until its time, then half open', async () => {
  const { all, clock, changed } = circuits()
  const untilMs = clock.now() + 5_000
  all.restore({ v: 1, kind: 'circuit', circuit: 'origin https://o', untilMs, openings: 3 })
  expect(all.allows('s', 'https://o')).toBe(false)
  await clock.advance(4_999)
  expect(changed).toEqual([])
  await clock.advance(2)
  expect(changed).toEqual(['origin https://o false'])
  all.started('s', 'https://o')
  const [change] = all.ended('s', 'https://o', failure('connect'))
  expect(change?.mark).toMatchObject({ openings: 4 })
  all.stop()
})

test('the probe that came to nothing is offered again to whoever waits, in any lane', async () => {
  const { all, clock, changed } = circuits()
  for (let i = 0; i < 2; i++) all.ended('s', 'https://o', failure('connect'))
  await clock.advance(1_300)
  all.started('s', 'https://o')
  changed.length = 0
  all.ended('s', 'https://o', { t: 'interrupted', detail: 'lane lost', durationMs: 1 })
  await clock.advance(1_000)
  expect(changed).toContain('origin https://o false')
  all.stop()
})
