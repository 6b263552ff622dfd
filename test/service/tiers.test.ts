import { afterAll, beforeAll, expect, test } from 'vitest'
import { decodeDelivery, deliveryHeader } from '../../src/core/delivery.ts'
import type { InRecord } from '../../src/core/record.ts'
import { createWorld, type Running, until, type World } from './world.ts'

/** The ladder as the configuration ships it, so that what lands where is what users get. */
const shipped = {
  HOOKTIDE_TOPICS_TIERS:
    '[{name: retry-10s, delay: 10s}, {name: retry-1m, delay: 1m}, {name: retry-5m, delay: 5m}, {name: retry-30m, delay: 30m}, {name: retry-2h, delay: 2h}]',
  HOOKTIDE_RETRY_BASE: '10s',
  HOOKTIDE_RETRY_CAP: '2h',
  HOOKTIDE_RETRY_RETRY_AFTER_CAP: '2h',
}

let long: World
let short: World
let longService: Running
let shortService: Running
beforeAll(async () => {
  ;[long, short] = await Promise.all([createWorld({ env: shipped }), createWorld()])
  ;[longService, shortService] = await Promise.all([long.up(), short.up()])
})
afterAll(() => Promise.all([long?.close(), short?.close()]))

async function inTier(world: World, tier: string, subscriptionId: string): Promise<InRecord | null> {
  const records = await world.read(world.prefix + tier)
  return records.find(({ key }) => key?.toString() === subscriptionId) ?? null
}

test('A test provisions the tiers on a real broker and shows that a failed delivery lands in the expected tier', async () => {
  const cases = [
    { id: 'plain', answer: { status: 503 }, hintMs: null },
    { id: 'hint-45s', answer: { status: 503, headers: { 'retry-after': '45' } }, hintMs: 45_000 },
    { id: 'hint-90s', answer: { status: 429, headers: { 'retry-after': '90' } }, hintMs: 90_000 },
    { id: 'hint-10m', answer: { status: 503, headers: { 'retry-after': '600' } }, hintMs: 600_000 },
    { id: 'hint-1d', answer: { status: 503, headers: { 'retry-after': '86400' } }, hintMs: 7_200_000 },
  ]
  const described = await long.admin.describe(long.topics.tiers)
  for (const [i, { delayMs }] of long.config.topics.tiers.entries()) {
    const state = described.get(long.topics.tiers[i] as string)
    expect(state?.partitions).toBe(long.config.topics.lanes)
    expect(state?.configs.get('message.timestamp.type')?.value).toBe('LogAppendTime')
    expect(Number(state?.configs.get('retention.ms')?.value)).toBeGreaterThanOrEqual(3 * delayMs + 3 * 86_400_000)
  }
  await long.subscribe(
    ...cases.map(({ id, answer }) =>
      long.subscription(
        id,
        long.endpoint.at(`/${id}`, () => answer),
      ),
    ),
  )
  await long.produce({ id: 'e1' })

  const ladder = longService.service.pipeline.ladder
  for (const { id, hintMs } of cases) {
    const [attempt] = await until(`attempt of ${id}`, async () => {
      const found = await long.attempts(id)
      return found.length > 0 && found
    })
    expect(attempt).toMatchObject({ attempt: 1, outcome: 'retryable', settlement: 'scheduled' })
    const delayMs = (attempt?.dueMs ?? 0) - (attempt?.startedAtMs ?? 0) - (attempt?.durationMs ?? 0)
    const [first] = ladder.route(hintMs ?? delayMs)
    const record = await until(`${id} in ${first}`, () => inTier(long, first as string, id))
    const delivery = decodeDelivery(record)
    expect(delivery).toMatchObject({
      ok: true,
      value: {
        subscriptionId: id,
        eventId: 'e1',
        attempts: 1,
        dueMs: attempt?.dueMs,
        lastError: String(cases.find((c) => c.id === id)?.answer.status),
      },
    })
    expect(record.headers[deliveryHeader.attempts]?.toString()).toBe('1')
    expect(record.value?.toString()).toBe('e1')
    if (hintMs !== null) {
      expect(delayMs).toBeGreaterThanOrEqual(hintMs - 5)
      expect(delayMs).toBeLessThan(hintMs + 1_000)
    } else {
      expect(delayMs).toBeGreaterThanOrEqual(ladder.floorMs - 5)
      expect(delayMs).toBeLessThanOrEqual(1.5 * ladder.floorMs + 5)
    }
    // Nowhere else.
    for (const tier of long.topics.tiers)
      expect([tier, await inTier(long, tier.slice(long.prefix.length), id)]).toEqual([
        tier,
        tier === long.prefix + first ? record : null,
      ])
  }
  expect(ladder.route(45_000)[0]).toBe('retry-10s')
  expect(ladder.route(90_000)[0]).toBe('retry-1m')
  expect(ladder.route(600_000)[0]).toBe('retry-5m')
  expect(ladder.route(7_200_000)[0]).toBe('retry-30m')
})

test('a scheduled delivery takes the whole route down the ladder, is delivered, and is never early', async () => {
  const { ladder } = shortService.service.pipeline
  const route = ladder.route(5_000)
  expect(route.length).toBeGreaterThanOrEqual(3)
  expect(new Set(route)).toEqual(new Set(['retry-1s', 'retry-300ms']))
  const url = short.endpoint.at('/route', (_post, nth) =>
    nth === 1 ? { status: 503, headers: { 'retry-after': '5' } } : { status: nth === 2 ? 500 : 200 },
  )
  await short.subscribe(short.subscription('route', url, { ordering: 'key' }))
  await short.produce({ id: 'r1', key: 'k' })
  await until('delivered at the third attempt', () => short.endpoint.delivered('/route').length === 1)
  const attempts = await until('three attempts in the log', async () => {
    const found = await short.attempts('route')
    return found.length === 3 && found
  })
  expect(attempts.map(({ attempt, settlement }) => [attempt, settlement])).toEqual([
    [1, 'scheduled'],
    [2, 'scheduled'],
    [3, 'done'],
  ])
  const posts = short.endpoint.of('/route')
  expect(new Set(posts.map(({ id }) => id)).size).toBe(1)
  for (const [i, { dueMs }] of attempts.entries()) {
    const next = posts[i + 1]
    if (next === undefined) continue
    expect(next.attempt).toBe(i + 2)
    expect(next.startMs).toBeGreaterThanOrEqual(dueMs as number)
    // Late by what a busy machine costs, not by a tier.
    expect(next.startMs - (dueMs as number)).toBeLessThan(2_000)
  }
  // Every hop of the five seconds is in the log, with the same due time and attempt count.
  const hops = (
    await Promise.all(
      short.config.topics.tiers.map(async ({ name, delayMs }) =>
        (await short.read(short.prefix + name)).map((record) => ({ ...record, name, delayMs })),
      ),
    )
  ).flat()
  const first = hops
    .filter(({ headers }) => headers['ht-attempts']?.toString() === '1')
    .sort((a, b) => a.timestampMs - b.timestampMs)
  // A hop that a busy machine makes late leaves less for those after it, so their number is not fixed: what each must
  // keep is that it ends before the delivery is due, but for what its transaction took.
  expect(first.length).toBeGreaterThan(1)
  expect(first[0]?.name).toBe(route[0])
  for (const { timestampMs, delayMs } of first)
    expect(timestampMs + delayMs).toBeLessThanOrEqual((attempts[0]?.dueMs as number) + 500)
  expect(new Set(first.map(({ headers }) => headers['ht-due']?.toString()))).toEqual(
    new Set([String(attempts[0]?.dueMs)]),
  )
  const { text } = await shortService.page('/metrics')
  const promoted = [...text.matchAll(/^hooktide_tier_promoted_total\{tier="(.+)"\} (\d+)$/gm)].map(([, tier, n]) => [
    tier,
    Number(n),
  ])
  expect(promoted.reduce((sum, [, n]) => sum + (n as number), 0)).toBe(hops.length)
})
