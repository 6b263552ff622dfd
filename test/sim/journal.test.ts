import { describe, expect, it } from 'vitest'
import type { Attempt } from '../../src/core/attempt.ts'
import type { Delivery } from '../../src/core/delivery.ts'
import type { Evidence, Expected, Place, Settled } from './evidence.ts'
import { checkJournal } from './journal.ts'
import type { PostEntry } from './receiver.ts'

function body(sequence: number): Buffer {
  return Buffer.from(JSON.stringify({ key: 'k', sequence }))
}

function post(
  sequence: number,
  attempt: number,
  startMs: number,
  endMs: number | null,
  more: Partial<PostEntry> = {},
): PostEntry {
  return {
    deliveryId: `d${sequence}`,
    subscription: 's',
    key: 'k',
    sequence,
    attempt,
    url: 'http://s/',
    process: 'w',
    incarnation: 1,
    startMs,
    startLocalMs: startMs,
    startWallMs: startMs,
    endMs,
    acceptedMs: endMs,
    retryAfterMs: null,
    outcome: endMs === null ? 'open' : 'status 200',
    ...more,
  }
}

function place(
  kind: Place['kind'],
  sequence: number,
  attempts: number,
  atMs: number,
  more: Partial<Place> = {},
): Place {
  const origin = { stream: 'events/0', generation: 0, offset: sequence }
  const delivery = {
    id: `d${sequence}`,
    subscriptionId: 's',
    attempts,
    dueMs: null,
    body: body(sequence),
    origin,
  } as Delivery
  const topic = kind === 'tier' ? 'retry-10s' : kind
  const delayMs = kind === 'tier' ? 10_000 : 0
  return {
    kind,
    topic,
    partition: 0,
    offset: sequence,
    timestampMs: atMs,
    appendedMs: atMs,
    decidedMs: atMs,
    delayMs,
    delivery,
    ...more,
  }
}

function settled(sequence: number, attempt: number, atMs: number, settlement: Attempt['settlement'] = 'done'): Settled {
  return { appendedMs: atMs, decidedMs: atMs, attempt: { deliveryId: `d${sequence}`, attempt, settlement } as Attempt }
}

function wanted(sequence: number, ordered = true): Expected {
  return { subscription: 's', key: 'k', sequence, ordered }
}

function commit(offset: number, atMs: number, topic = 'deliveries') {
  return { topic, partition: 0, offset, atMs }
}

function crash(atMs: number) {
  return { kind: 'crash', process: 'w', atMs, untilMs: atMs }
}

/** Three events in order; the second fails once, waits in its tier and is then delivered. */
const good: Evidence = {
  expected: [wanted(0), wanted(1), wanted(2)],
  posts: [
    post(0, 1, 10, 20),
    post(1, 1, 30, 40, { outcome: 'status 503' }),
    post(1, 2, 10_100, 10_110),
    post(2, 1, 10_120, 10_130),
  ],
  places: [
    place('deliveries', 0, 0, 1),
    place('deliveries', 1, 0, 1),
    place('deliveries', 2, 0, 1),
    place('tier', 1, 1, 50, { offset: 0 }),
  ],
  settled: [settled(0, 1, 50), settled(1, 1, 50, 'scheduled'), settled(1, 2, 10_200), settled(2, 1, 10_200)],
  positions: [commit(1, 50), commit(2, 60), commit(3, 10_200), commit(1, 10_200, 'retry-10s')],
  faults: [],
  losses: [],
  lines: [],
  brokerClockMs: 0,
  gauges: { inFlight: 0 },
}

function verdict(change: Partial<Evidence>): string[] {
  return checkJournal({ ...good, ...change }, { ended: true })
}

describe('journal checker', () => {
  it('finds nothing where nothing is wrong', () => {
    expect(verdict({})).toEqual([])
  })

  const broken: [string, Partial<Evidence>, RegExp][] = [
    ['an event that was never delivered', { expected: [...good.expected, wanted(3)] }, /^lost: s\/k#3 never became/],
    [
      'a delivery that is not final at the end',
      {
        expected: [...good.expected, wanted(3)],
        places: [...good.places, place('deliveries', 3, 0, 1)],
        positions: [...good.positions, commit(4, 20_000)],
      },
      /^lost: s\/k#3 is not final, last seen as deliveries\/0@3/,
    ],
    [
      'a repeat for no reason',
      { posts: [post(0, 1, 10, 20), post(0, 1, 22, 25), ...good.posts.slice(1)] },
      /^repeat: .* nothing happened in between/,
    ],
    [
      'a repeat of what was committed, crash or not',
      { posts: [...good.posts, post(2, 1, 10_300, 10_310)], faults: [crash(10_250)] },
      /^repeat: .*#2 .* although its settlement was committed/,
    ],
    [
      'n+1 started while n waits for its retry',
      { posts: [...good.posts.slice(0, 2), post(2, 1, 60, 70), post(1, 2, 10_100, 10_110)] },
      /^order: s\/k#2 attempt 1 .* started while s\/k#1 was final only at 10110/,
    ],
    [
      'two open POSTs in one line',
      { posts: [post(0, 1, 10, 35), ...good.posts.slice(1)] },
      /^order: s\/k#1 .* started while s\/k#0 .* was/,
    ],
    [
      'a step back without a fault',
      { posts: [...good.posts, post(0, 1, 10_140, 10_150)], settled: good.settled.slice(1) },
      /^order: s\/k#0 .* went back behind s\/k#2/,
    ],
    [
      'a watermark over an open POST',
      { positions: [commit(1, 15), ...good.positions.slice(1)] },
      /^commit: deliveries\/0 went to 1 at 15.0 ms over undone deliveries\/0@0/,
    ],
    [
      'a watermark that goes back',
      { positions: [...good.positions, commit(2, 20_000)] },
      /^commit: deliveries\/0 went back from 3 to 2/,
    ],
    [
      'a failed attempt whose retry was never written',
      {
        places: good.places.slice(0, 3),
        settled: [settled(0, 1, 50), settled(2, 1, 10_200)],
        positions: [commit(3, 60)],
      },
      /^commit: deliveries\/0 went to 3 .* over undone deliveries\/0@1/,
    ],
    [
      'an attempt number left out',
      { posts: good.posts.map((p) => (p.attempt === 2 ? { ...p, attempt: 3 } : p)) },
      /^attempts: .* attempt 3 .* comes after attempt 1/,
    ],
    [
      'an id that changes',
      { posts: good.posts.map((p) => (p.attempt === 2 ? { ...p, deliveryId: 'other' } : p)) },
      /^identity: s\/k#1 was sent as d1 and as other/,
    ],
    [
      'a retry before its tier is ripe',
      {
        posts: good.posts.map((p) =>
          p.attempt === 2 ? { ...p, startMs: 9_000, startLocalMs: 9_000, startWallMs: 9_000 } : p,
        ),
      },
      /^early: s\/k#1 attempt 2 .* left retry-10s 1050 ms before/,
    ],
    [
      'a retry before its due time',
      {
        places: good.places.map((p) => (p.kind === 'tier' ? { ...p, delivery: { ...p.delivery, dueMs: 10_105 } } : p)),
      },
      /^early: s\/k#1 attempt 2 .* by 5 ms/,
    ],
    [
      'two open POSTs of one delivery',
      {
        posts: [...good.posts, post(2, 1, 10_125, 10_140)].sort((a, b) => a.startMs - b.startMs),
        faults: [crash(10_121)],
      },
      /^overlap: s\/k#2/,
    ],
    [
      'a move made twice',
      { places: [...good.places, place('dead', 1, 2, 10_200), place('dead', 1, 2, 10_300, { offset: 9 })] },
      /^move: dead\/0@1 .* and dead\/0@9 .* are the same/,
    ],
    ['records left behind', { positions: good.positions.slice(0, 2) }, /^lag: 1 records of (deliveries|retry-10s)/],
    ['a gauge that does not return to zero', { gauges: { inFlight: 2 } }, /^gauge: inFlight is 2/],
    ['a line that is never handed back', { lines: ['0 line:s:k'] }, /^line: 0 line:s:k/],
  ]
  for (const [name, change, expected] of broken) {
    it(`finds ${name}`, () => {
      expect(verdict(change)).toContainEqual(expect.stringMatching(expected))
    })
  }

  it('accepts a repeat of what was open, or finished and not yet committed, at a crash', () => {
    const again = post(0, 1, 10_000, 10_005, { incarnation: 2 })
    const changed = {
      expected: [wanted(0)],
      posts: [post(0, 1, 10, null, {}), again],
      places: [place('deliveries', 0, 0, 1)],
      settled: [settled(0, 1, 10_050)],
      positions: [commit(1, 10_050)],
    }
    expect(verdict({ ...changed, faults: [crash(15)] })).toEqual([])
    expect(verdict(changed)).not.toEqual([])
  })

  it('accepts what retention took, and what was optional', () => {
    const expected = [...good.expected, wanted(3), { ...wanted(4), optional: true }]
    const places = [...good.places, place('deliveries', 3, 0, 1)]
    const losses = [{ topic: 'deliveries', partition: 0, from: 0, to: 4 }]
    expect(verdict({ expected, places, losses, positions: [...good.positions, commit(3, 30_000)] })).toEqual([
      expect.stringMatching(/^lag: 1 records of deliveries/),
    ])
  })

  it('accepts a retry that was due by the clock of who parked it, and none that was parked before', () => {
    const places = good.places.map((p) =>
      p.kind === 'tier' ? { ...p, delivery: { ...p.delivery, dueMs: 12_000 } } : p,
    )
    const parked = (byItsClockMs: number) =>
      place('parked', 1, 1, 10_080, { timestampMs: byItsClockMs, delivery: places[3]?.delivery as Delivery })
    expect(verdict({ places: [...places, parked(12_001)] })).toEqual([])
    expect(verdict({ places: [...places, parked(11_999)] })).toEqual([expect.stringMatching(/^early: .* by 1900 ms/)])
  })

  it('does not ask for the end before the end', () => {
    const early = { ...good, expected: [...good.expected, wanted(3)], gauges: { inFlight: 1 } }
    expect(checkJournal(early, { ended: false })).toEqual([])
  })
})
