import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStateHome } from '../../src/app/state-tools.ts'
import { QueryStore } from '../../src/state/query-store.ts'
import { hooktide } from '../cli/support.ts'
import { realClock } from '../support/clock.ts'
import { killAll, run } from './process.ts'
import { createWorld, until, type World } from './world.ts'

let world: World
let store: QueryStore
let healed = false
const folder = mkdtempSync(join(tmpdir(), 'hooktide-state-service-'))
const total = 60

beforeAll(async () => {
  world = await createWorld({ env: { HOOKTIDE_STATE_ENABLED: 'true', HOOKTIDE_STATE_PATH: folder } })
  store = new QueryStore(openStateHome(world.config, world.env, realClock), realClock)
  const { endpoint } = world
  await world.subscribe(
    world.subscription('plain', endpoint.at('/plain'), { ordering: 'key', tenant: 'default' }),
    world.subscription(
      'flaky',
      endpoint.at('/flaky', (_post, nth) => ({ status: nth % 3 === 0 ? 503 : 200 })),
      { ordering: 'key' },
    ),
    world.subscription(
      'broken',
      endpoint.at('/broken', () => ({ status: healed ? 200 : 400 })),
    ),
  )
})
afterAll(async () => {
  await killAll()
  await store?.close()
  await world?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What the state says, once it says so; then it must be what the whole log says. */
async function stateIs(wanted: Readonly<Record<string, number>>): Promise<void> {
  let counts: unknown = null
  await until(
    JSON.stringify(wanted),
    async () => {
      counts = await store.counts({}).catch(String)
      return Object.entries(wanted).every(([status, n]) => (counts as Record<string, number>)[status] === n)
    },
    { withinMs: 40_000, seen: () => counts },
  )
}

async function verified(): Promise<void> {
  const result = await hooktide(['state', 'verify', '--json'], { env: world.env })
  expect({ ...JSON.parse(result.out), code: result.code }).toMatchObject({ code: 0, differences: 0, found: [] })
}

test('after kill −9 of everything, twice, the state says what became of each delivery, and is what a rebuild gives', async () => {
  const events = Array.from({ length: total }, (_, i) => ({ id: `e${i}`, key: `k${i % 7}` }))
  for (const third of [events.slice(0, 20), events.slice(20, 40)]) {
    const service = run(['up'], world.env)
    await world.produce(...third)
    const seen = world.endpoint.posts.length
    await until('it is in the middle of it', () => world.endpoint.posts.length > seen + 15)
    service.signal('SIGKILL')
    await service.ended
  }
  await world.up()
  // Alone in its process, as where deliveries come fast.
  await world.up({ roles: ['projector'] })
  await world.produce(...events.slice(40))
  await stateIs({ delivered: 2 * total, dead: total, queued: 0, scheduled: 0, parked: 0 })
  await verified()
  const dead = await store.deliveries({ subscriptionId: 'broken', status: 'dead' }, { limit: 1000, cursor: null })
  expect(dead.items).toHaveLength(total)
  expect(dead.items[0]).toMatchObject({ deadReason: 'rejected', lastStatus: 400, attempts: 1, sendings: 1 })
  const one = await store.delivery(dead.items[0]?.id as string)
  expect(one?.log.map(({ attempt, status, settlement }) => [attempt, status, settlement])).toEqual([[1, 400, 'dead']])
  const health = await store.subscriptionHealth('flaky')
  const attempts = await world.attempts('flaky')
  expect(health).toMatchObject({
    succeeded: total,
    failed: attempts.filter(({ outcome }) => outcome === 'retryable').length,
    deliveries: { delivered: total },
  })
  expect(await store.subscriptionHealth('broken')).toMatchObject({
    succeeded: 0,
    failed: total,
    consecutiveFailures: total,
  })
}, 120_000)

test('after a redrive and after the same events came again the deliveries are the same ones, sent once more', async () => {
  healed = true
  const redriven = await hooktide(['dead', 'redrive', '--subscription', 'broken'], { env: world.env })
  expect(redriven).toMatchObject({ code: 0 })
  await stateIs({ delivered: 3 * total, dead: 0, queued: 0, scheduled: 0 })
  await verified()
  await world.produce(...Array.from({ length: 10 }, (_, i) => ({ id: `e${i}`, key: `k${i % 7}` })))
  await until('each of them was sent once more', async () => {
    const { items } = await store.deliveries({ subscriptionId: 'plain' }, { limit: 1000, cursor: null })
    return (
      items.length === total &&
      items.filter(({ sendings, status }) => sendings === 2 && status === 'delivered').length === 10
    )
  })
  await stateIs({ delivered: 3 * total, dead: 0, queued: 0, scheduled: 0 })
  await verified()
  const found = await store.deliveries({ eventId: 'e3' }, { limit: 10, cursor: null })
  expect(found.items.map(({ subscriptionId, sendings }) => `${subscriptionId} ${sendings}`).sort()).toEqual([
    'broken 3',
    'flaky 2',
    'plain 2',
  ])
}, 120_000)

test('a rebuild takes the place of the live state under a running service, and the state goes on', async () => {
  const rebuilt = await hooktide(['state', 'rebuild', '--json'], { env: world.env })
  expect(rebuilt).toMatchObject({ code: 0 })
  await world.produce({ id: 'after' })
  await stateIs({ delivered: 3 * total + 3 })
  await verified()
  const status = await hooktide(['state', 'status', '--json'], { env: world.env })
  expect(JSON.parse(status.out)).toMatchObject({ where: folder, counts: { delivered: 3 * total + 3 } })
}, 120_000)

test('what is erased is gone from tables and state, and what the log keeps is named with its time', async () => {
  const env = world.env
  const dry = JSON.parse((await hooktide(['erase', '--event', 'e3', '--dry-run', '--json'], { env })).out)
  expect(dry).toMatchObject({ deliveries: 3, subscriptions: [], done: null })
  expect((await store.counts({})).delivered).toBe(3 * total + 3)
  const event = await hooktide(['erase', '--event', 'e3', '--json'], { env })
  expect(JSON.parse(event.out)).toMatchObject({ done: { deliveries: 3 } })
  expect(await store.deliveries({ eventId: 'e3' }, { limit: 10, cursor: null })).toEqual({
    items: [],
    nextCursor: null,
  })
  await hooktide(['subscriptions', 'pause', 'broken'], { env })
  const gone = await hooktide(['erase', '--subscription', 'broken', '--json'], { env })
  const told = JSON.parse(gone.out)
  expect(told).toMatchObject({ subscriptions: ['broken'], done: { deliveries: total }, orders: [] })
  const kept = told.remains.find(({ topic }: { topic: string }) => topic === world.topics.dead)
  expect(kept).toMatchObject({ how: 'retention' })
  expect(kept.goneByMs).toBeGreaterThan(Date.now() + 90 * 86_400_000)
  expect((await hooktide(['subscriptions', 'show', 'broken'], { env })).code).toBe(1)
  expect(await store.subscriptionHealth('broken')).toBeNull()
  // The projector goes on from rows that are gone: what comes next is counted right.
  await world.produce({ id: 'later' })
  await stateIs({ delivered: 2 * total + 2 })
}, 120_000)
