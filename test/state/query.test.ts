import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/app.ts'
import type { DeliveryQuery, DeliveryView } from '../../src/core/state-view.ts'
import { QueryStore } from '../../src/state/query-store.ts'
import { type DeliveryStory, MemoryLog, play } from './histories.ts'
import { project, sqliteHome } from './state-test.ts'

/** 40 deliveries of five subscriptions: every fourth dead, every fifth still scheduled. */
const stories: DeliveryStory[] = Array.from({ length: 40 }, (_, number) => ({
  number,
  subscription: number % 5,
  sendings: [
    number % 4 === 0
      ? [{ t: 'end', how: 'dead' }]
      : number % 5 === 1
        ? [{ t: 'attempt', status: 503, hops: 0, park: false }]
        : [{ t: 'end', how: 'done' }],
  ],
}))

async function stateOf(): Promise<QueryStore> {
  const log = new MemoryLog(3)
  const home = sqliteHome()
  play(log, stories)
  await project(log, home)
  const store = new QueryStore(home, systemClock)
  onTestFinished(() => store.close())
  return store
}

async function all(store: QueryStore, query: DeliveryQuery, limit: number): Promise<DeliveryView[]> {
  const items: DeliveryView[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof store.deliveries>> = await store.deliveries(query, { limit, cursor })
    items.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== null)
  return items
}

const cases: readonly (readonly [string, DeliveryQuery, (one: DeliveryView) => boolean])[] = [
  ['everything', {}, () => true],
  ['a tenant', { tenant: 'acme' }, ({ tenant }) => tenant === 'acme'],
  ['an event', { eventId: 'ev1' }, ({ eventId }) => eventId === 'ev1'],
  [
    'an event, of a tenant',
    { eventId: 'ev1', tenant: 'globex' },
    ({ eventId, tenant }) => eventId === 'ev1' && tenant === 'globex',
  ],
  ['a subscription', { subscriptionId: 'sub2' }, ({ subscriptionId }) => subscriptionId === 'sub2'],
  [
    'the dead of a subscription',
    { subscriptionId: 'sub0', status: 'dead' },
    ({ subscriptionId, status }) => subscriptionId === 'sub0' && status === 'dead',
  ],
  ['the scheduled', { status: 'scheduled' }, ({ status }) => status === 'scheduled'],
  [
    'the dead of a tenant, of a type',
    { status: 'dead', tenant: 'acme', type: 'order.created' },
    ({ status, tenant, eventType }) => status === 'dead' && tenant === 'acme' && eventType === 'order.created',
  ],
  [
    'the delivered of a subscription of another tenant',
    { status: 'delivered', subscriptionId: 'sub1', tenant: 'globex' },
    () => false,
  ],
  ['a type', { type: 'order.paid' }, ({ eventType }) => eventType === 'order.paid'],
]

test('pages hold what was asked for, newest first, each once, whatever their size', async () => {
  const store = await stateOf()
  const everything = await all(store, {}, 1000)
  expect(everything).toHaveLength(40)
  for (const [name, query, wanted] of cases) {
    const ids = everything.filter(wanted).map(({ id }) => id)
    for (const limit of [1, 7, 1000]) {
      expect([name, limit, (await all(store, query, limit)).map(({ id }) => id)]).toEqual([name, limit, ids])
    }
  }
  const times = everything.map(({ createdMs }) => createdMs)
  expect(times).toEqual([...times].sort((a, b) => b - a))
  const [from, to] = [times[30] as number, times[10] as number]
  expect((await all(store, { fromMs: from, toMs: to }, 4)).map(({ createdMs }) => createdMs)).toEqual(
    times.filter((ms) => ms >= from && ms < to),
  )
})

test('another tenant sees nothing of a delivery, a subscription, a count', async () => {
  const store = await stateOf()
  expect(await store.delivery('msg_d0', 'acme')).toMatchObject({ id: 'msg_d0', status: 'dead', deadReason: 'rejected' })
  expect(await store.delivery('msg_d0', 'globex')).toBeNull()
  expect(await store.delivery('msg_d0')).toMatchObject({ log: [{ attempt: 1, status: 400, settlement: 'dead' }] })
  expect(await store.subscriptionHealth('sub0', 'globex')).toBeNull()
  expect(await store.subscriptionHealth('sub0', 'acme')).toMatchObject({ deliveries: { dead: 2 }, tenant: 'acme' })
  const listed = await store.subscriptionsHealth({ tenant: 'globex' }, { limit: 10, cursor: null })
  expect(listed.items.map(({ subscriptionId }) => subscriptionId)).toEqual(['sub3', 'sub4'])
  const sum = (counts: object) => Object.values(counts).reduce((a: number, b: number) => a + b, 0)
  expect(sum(await store.counts({ tenant: 'globex' }))).toBe(16)
  expect(sum(await store.counts({ tenant: 'globex', subscriptionId: 'sub0' }))).toBe(0)
})

test('health says since when a subscription fails, and pages of it go on where they ended', async () => {
  const store = await stateOf()
  const { items } = await store.subscriptionsHealth({ failing: true }, { limit: 10, cursor: null })
  expect(items.map(({ subscriptionId }) => subscriptionId)).toEqual(['sub1'])
  expect(items[0]).toMatchObject({ succeeded: 0, failed: 8, consecutiveFailures: 8, lastSuccessMs: null })
  expect(items[0]?.failingSinceMs).toBeLessThan(items[0]?.lastFailureMs as number)
  const first = await store.subscriptionsHealth({}, { limit: 2, cursor: null })
  const rest = await store.subscriptionsHealth({}, { limit: 100, cursor: first.nextCursor })
  const ids = [...first.items, ...rest.items].map(({ subscriptionId }) => subscriptionId)
  expect(ids).toEqual(['sub0', 'sub1', 'sub2', 'sub3', 'sub4'])
  expect(rest.nextCursor).toBeNull()
})

test('a cursor that is not ours, and a limit out of bounds, are refused', async () => {
  const store = await stateOf()
  await expect(store.deliveries({}, { limit: 10, cursor: 'xyz' })).rejects.toMatchObject({ code: 'usage' })
  await expect(store.orders({}, { limit: 10, cursor: Buffer.from('[1]').toString('base64url') })).rejects.toMatchObject(
    {
      code: 'usage',
    },
  )
  await expect(store.deliveries({}, { limit: 0, cursor: null })).rejects.toMatchObject({ code: 'usage' })
})

test('who waits for an offset is told when it is in, and that it is not in time', async () => {
  const store = await stateOf()
  expect(await store.waitFor({ topic: 'deliveries', partition: 0, offset: 1 }, 1_000)).toBe(true)
  expect(await store.waitFor({ topic: 'deliveries', partition: 0, offset: 1_000 }, 50)).toBe(false)
})

test('without a state a question says how to get one', async () => {
  const store = new QueryStore(sqliteHome(), systemClock)
  await expect(store.counts({})).rejects.toMatchObject({
    code: 'state.unavailable',
    remedy: expect.stringContaining('projector'),
  })
})
