import { describe, expect, it } from 'vitest'
import type { CliDeps } from '../../src/cli/deps.ts'
import { ratesBetween, sampleOfPages } from '../../src/cli/top-sample.ts'
import { topText } from '../../src/cli/top-view.ts'
import type { Vitals } from '../../src/core/vitals.ts'
import { createObserver } from '../../src/observe/observer.ts'
import { FakeClock } from '../sim/fake-clock.ts'
import { hooktide, ownWorld, sink } from './support.ts'

const clock = new FakeClock({ startMs: 1_000_000 })

/** An instance as it is: its page is the observer's own. */
function instance(vitals: Partial<Vitals>) {
  const observer = createObserver({ clock, stream: { write: () => {} }, processMetrics: false })
  observer.registerVitals(() => vitals)
  return { observer, page: async () => (await observer.metrics()).body }
}

const a = instance({
  readyDepth: 3,
  oldestReadyAgeMs: 4_000,
  inFlight: { count: 10, bytes: 1 },
  maxInFlight: 20,
  laneCount: 3,
  backlog: [{ lane: 0, records: 120, done: 500 }],
  lines: { blocked: { lines: 2, parked: 9 } },
  circuits: { subscription: 1, origin: 0 },
  tiers: [{ tier: 'retry-10s', held: 4, lowestDueMs: 998_000, promoted: 0 }],
  lag: [{ group: 'hooktide.router', topic: 'e', records: 7 }],
  worst: [{ subscriptionId: 'slow', oldestReadyAgeMs: 4_000, failures: 0 }],
})
const b = instance({
  oldestReadyAgeMs: 9_000,
  inFlight: { count: 2, bytes: 1 },
  maxInFlight: 20,
  laneCount: 3,
  backlog: [{ lane: 2, records: null, done: 40 }],
  tiers: [{ tier: 'retry-10s', held: 1, lowestDueMs: 1_030_000, promoted: 0 }],
  lag: [{ group: 'hooktide.router', topic: 'e', records: 7 }],
  worst: [{ subscriptionId: 'broken', oldestReadyAgeMs: 0, failures: 12 }],
})
const pages: Record<string, () => Promise<string>> = { 'http://a:1/metrics': a.page, 'http://b:1/metrics': b.page }
const fetchText: CliDeps['fetchText'] = async (url) => {
  const page = pages[url]
  if (page === undefined) throw new Error('connection refused')
  return page()
}

describe('a sample', () => {
  it('of several instances: amounts add up, of ages and due times the worst counts, lanes have their owner', async () => {
    const texts = await Promise.all(
      Object.entries(pages).map(async ([url, page]) => ({ url, text: await page(), error: null })),
    )
    expect(sampleOfPages(texts, 1_000_000)).toMatchObject({
      ...{ readyDepth: 3, backlog: 120, oldestReadyAgeMs: 9_000, inFlight: 12, maxInFlight: 40, lanesConfigured: 3 },
      lanes: [
        { lane: 0, owner: 'a:1', backlog: 120, done: 500 },
        { lane: 2, owner: 'b:1', backlog: null, done: 40 },
      ],
      tiers: [{ tier: 'retry-10s', waiting: 5, lowestDueInMs: -2_000 }],
      worst: [
        { subscriptionId: 'slow', oldestReadyAgeMs: 4_000, failures: 0 },
        { subscriptionId: 'broken', oldestReadyAgeMs: 0, failures: 12 },
      ],
      ...{ lines: { blocked: 2 }, parked: 9, circuitsOpen: 1, routerLag: 7 },
    })
  })

  it('has rates against the one before, and none for what began anew', () => {
    const page = (text: string, atMs: number) => sampleOfPages([{ url: 'http://a:1/metrics', text, error: null }], atMs)
    const before = page('hooktide_attempts_total{settlement="done"} 10\nhooktide_lane_done_offsets{lane="0"} 5', 0)
    const now = page('hooktide_attempts_total{settlement="done"} 40\nhooktide_lane_done_offsets{lane="0"} 2', 2_000)
    expect(ratesBetween(before, now)).toEqual({ counters: { done: 15, routed: 0, rejected: 0 }, lanes: new Map() })
    expect(ratesBetween(null, now).counters).toEqual({})
  })

  it('lets no name of others steer the terminal', () => {
    const text = 'hooktide_subscription_failures{subscription="x\u001b[2Jy"} 3'
    const shown = topText(null, sampleOfPages([{ url: 'http://a:1/', text, error: null }], 0))
    expect(shown).toContain('x·[2Jy')
    expect(shown).not.toContain('\u001b')
  })
})

describe('hooktide top', () => {
  const urls = ['--url', 'http://a:1/metrics', '--url', 'http://b:1/metrics']

  it('prints once where there is no terminal: vital signs first, whose lanes, what is overdue, who is worst', async () => {
    const { code, out } = await hooktide(['top', '--every', '50ms', ...urls], { fetchText })
    expect(code).toBe(0)
    expect(out).toMatch(
      /^oldest ready {2}9s\nbacklog {7}120, 3 in memory\nin flight {5}12 of 40 \(30 %\)\nlanes {9}2 of 3 owned\n/,
    )
    expect(out).toMatch(/^ {3}0 {2}a:1 +120 +500 +0$/m)
    expect(out).toMatch(/^retry-10s +5 {2}2s OVERDUE$/m)
    expect(out).toMatch(/^broken +- +12$/m)
    expect(out).not.toContain('\u001b')
  })

  it('has JSON with rates', async () => {
    const { out } = await hooktide(['top', '--json', '--every', '50ms', ...urls], { fetchText })
    expect(JSON.parse(out)).toMatchObject({ backlog: 120, perSecond: { counters: { routed: 0 }, lanes: { 0: 0 } } })
  })

  it('says which instance does not answer, and fails when none does', async () => {
    const gone = ['--url', 'http://gone:1/metrics']
    const some = await hooktide(['top', '--every', '50ms', ...urls, ...gone], { fetchText })
    expect(some.code).toBe(0)
    expect(some.out).toContain('NO ANSWER  http://gone:1/metrics: connection refused')
    const none = await hooktide(['top', ...gone], { fetchText })
    expect(none.code).toBe(1)
    expect(none.err).toMatch(/no instance answers\n {2}http:\/\/gone:1\/metrics: connection refused\nGive the address/)
  })

  it('is live on a terminal, outlives an outage, and gives the screen back at the end', async () => {
    const ending = new AbortController()
    const terminal = sink(true)
    let asked = 0
    const { code } = await hooktide(['top', '--every', '20ms', ...urls.slice(0, 2)], {
      stdout: terminal.output,
      signal: ending.signal,
      async fetchText(url, timeoutMs) {
        asked++
        if (asked === 3) throw new Error('connection refused')
        if (asked === 5) ending.abort()
        return fetchText(url, timeoutMs)
      },
    })
    const text = terminal.text()
    expect(code).toBe(0)
    expect(text.startsWith('\u001b[?1049h')).toBe(true)
    expect(text.endsWith('\u001b[?1049l')).toBe(true)
    expect(text.split('\u001b[2J\u001b[H')).toHaveLength(6)
    expect(text).toContain('NO ANSWER: no instance answers\nThe last that was seen:\n\noldest ready')
  })

  it('asks Kafka alone where no instance is named', async () => {
    const env = await ownWorld()
    const { code, out } = await hooktide(['top', '--once', '--every', '50ms'], { env })
    expect(code).toBe(0)
    expect(out).toMatch(/^oldest ready {2}none waits\nbacklog {7}0\nin flight {5}-\nlanes {9}0 of 2 owned$/m)
    expect(out).toMatch(/^ {3}1 {2}NOBODY +0/m)
    expect(out).toContain('ask instances with --url')
  })
})
