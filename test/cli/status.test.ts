import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodeDelivery } from '../../src/core/delivery.ts'
import { OffsetTracker } from '../../src/core/offset-tracker.ts'
import { emptyHeaders, type OutRecord } from '../../src/core/record.ts'
import type { Cluster } from '../../src/operations/cluster.ts'
import { inFlightOf } from '../../src/operations/status-read.ts'
import { clusterOf, hooktide, ownWorld } from './support.ts'

let env: Record<string, string>
let cluster: Cluster
let prefix: string
beforeAll(async () => {
  env = await ownWorld({
    HOOKTIDE_TOPICS_TIERS: '[{name: retry-10s, delay: 10s}, {name: retry-1m, delay: 1m}]',
    HOOKTIDE_RETRY_CAP: '10m',
    HOOKTIDE_RETRY_RETRY_AFTER_CAP: '10m',
  })
  prefix = env.HOOKTIDE_TOPICS_PREFIX as string
  cluster = clusterOf(env)
})
afterAll(() => cluster.close())

function delivery(topic: string, partition: number, n: number): OutRecord {
  const headers = encodeDelivery({
    id: `d${n}`,
    subscriptionId: 's',
    tenant: 'default',
    eventId: `e${n}`,
    eventType: 't',
    contentType: 'text/plain',
    orderingKey: null,
    origin: { stream: 'events/0', generation: 1, offset: n },
    eventTimeMs: 1,
    attempts: 0,
    dueMs: null,
    lastError: null,
    traceparent: null,
  })
  return { topic: prefix + topic, partition, key: 's', value: Buffer.from('x'), headers }
}

async function status(...args: string[]) {
  const { code, out, err } = await hooktide(['status', '--json', ...args], { env })
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out)
}

describe('status on a real broker', () => {
  test('nothing there yet: zeros, no owner, exit 0', async () => {
    const found = await status()
    expect(found).toEqual({
      atMs: expect.any(Number),
      groups: [],
      lanes: [0, 1].map((lane) => ({
        lane,
        owner: null,
        committed: null,
        lag: 0,
        ready: 0,
        exact: true,
        oldestReadyMs: null,
      })),
      tiers: [
        { tier: `${prefix}retry-10s`, delayMs: 10_000, depth: 0, exact: true, lowestDueMs: null },
        { tier: `${prefix}retry-1m`, delayMs: 60_000, depth: 0, exact: true, lowestDueMs: null },
      ],
      parked: { lines: 0, blocked: 0, stopped: 0, draining: 0, deliveries: 0 },
      dead: { records: 0, exact: true },
      rejected: { records: 0, exact: true },
      subscriptions: { active: 0, paused: 0, disabled: 0, unreadable: 0 },
      lag: [
        { group: `${prefix}router`, topic: `${prefix}events`, lag: 0, lost: 0 },
        ...['deliveries', 'retry-10s', 'retry-1m'].map((topic) => ({
          group: `${prefix}deliverer`,
          topic: prefix + topic,
          lag: 0,
          lost: 0,
        })),
      ],
      inFlight: null,
      unreachable: [],
    })
  })

  test('what the bitmap says is done is not ready; tiers say when their head is due; lines are counted', async () => {
    const producer = cluster.kafka.producer()
    const line = {
      v: 1,
      kind: 'line',
      line: 's k a',
      state: 'blocked',
      head: 'd1',
      next: 0,
      count: 4,
      since: 0,
      sinceMs: 1,
    }
    const sentMs = Date.now()
    await producer.send([
      ...[0, 1, 2, 3, 4].map((n) => delivery('deliveries', 1, n)),
      delivery('retry-1m', 0, 9),
      {
        topic: `${prefix}lane-state`,
        partition: 0,
        key: 'line:s k a',
        value: Buffer.from(JSON.stringify(line)),
        headers: emptyHeaders,
      },
      { topic: `${prefix}events`, partition: 0, key: null, value: Buffer.from('{}'), headers: emptyHeaders },
    ])
    // 0 and 2 are done: committed is 1, the bitmap says 2.
    const tracker = new OffsetTracker(0)
    for (let offset = 0; offset < 5; offset++) tracker.see(offset)
    tracker.done(0)
    tracker.done(2)
    const lane = cluster.kafka.transactional(`${prefix}lane.1`)
    await lane.fence()
    const offsets = [
      { topic: `${prefix}deliveries`, partition: 1, offset: tracker.base, metadata: tracker.marks().metadata },
    ]
    await lane.transact({ group: `${prefix}deliverer`, records: [delivery('dead', 0, 7)], offsets })

    const found = await status()
    expect(found.lanes[1]).toMatchObject({ lane: 1, committed: 1, lag: 4, ready: 3, exact: true })
    expect(found.lanes[1].oldestReadyMs).toBeGreaterThanOrEqual(0)
    expect(found.lanes[1].oldestReadyMs).toBeLessThan(Date.now() - sentMs + 1000)
    expect(found.tiers[1].depth).toBe(1)
    expect(Math.abs(found.tiers[1].lowestDueMs - sentMs - 60_000)).toBeLessThan(5000)
    expect(found.parked).toEqual({ lines: 1, blocked: 1, stopped: 0, draining: 0, deliveries: 4 })
    // The transaction's marker is an offset, but no dead letter.
    expect(found.dead).toEqual({ records: 1, exact: true })
    expect(found.lag[0]).toMatchObject({ topic: `${prefix}events`, lag: 1 })

    const { out } = await hooktide(['status'], { env })
    expect(out).toMatch(/^ready +3, oldest \d+/m)
    expect(out).toMatch(/retry-1m +1m +1 {2}in 5\ds$/m)
    for (const text of out.split('\n')) expect(text.length).toBeLessThanOrEqual(100)
  })

  test('instances are asked for what is in flight; one that is silent is named', async () => {
    const fetchText = async (url: string) => {
      if (url === 'http://down') throw new Error('refused')
      return '# TYPE hooktide_in_flight gauge\nhooktide_in_flight 7\nhooktide_in_flight_bytes 900\n'
    }
    const args = [
      'status',
      '--json',
      '--metrics-url',
      'http://a',
      '--metrics-url',
      'http://b',
      '--metrics-url',
      'http://down',
    ]
    const { out } = await hooktide(args, { env, fetchText })
    expect(JSON.parse(out)).toMatchObject({ inFlight: 14, unreachable: ['http://down'] })
  })

  test('--watch goes on until it is interrupted, one object per line', async () => {
    const end = new AbortController()
    let lines = 0
    const stdout = {
      isTTY: false,
      columns: 100,
      write: (text: string | Buffer) => {
        expect(JSON.parse(String(text))).toHaveProperty('lanes')
        if (++lines === 2) end.abort()
      },
    }
    const { code } = await hooktide(['status', '--watch', '--every', '10ms', '--json'], {
      env,
      stdout,
      signal: end.signal,
    })
    expect({ code, lines }).toEqual({ code: 0, lines: 2 })
  })

  test('missing topics are named with the remedy', async () => {
    const { code, err } = await hooktide(['status'], { env: { ...env, HOOKTIDE_TOPICS_PREFIX: 'nowhere.' } })
    expect(code).toBe(1)
    expect(err).toContain('  nowhere.deliveries\n')
    expect(err).toContain('Run `hooktide topics apply`')
  })
})

test.each([
  ['hooktide_in_flight 3\n', 3],
  ['hooktide_in_flight{a="1"} 3\nhooktide_in_flight{a="2"} 4\n', 7],
  ['hooktide_in_flight_bytes 3\n', null],
  ['', null],
])('in flight out of %j is %s', (text, expected) => {
  expect(inFlightOf(text)).toBe(expected)
})
