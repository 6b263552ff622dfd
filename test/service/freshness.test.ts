import { afterAll, beforeAll, expect, test } from 'vitest'
import { decodeSubscription } from '../../src/schema/decode.ts'
import { hooktide } from '../cli/support.ts'
import { gate } from './endpoint.ts'
import { createWorld, type Running, until, type World } from './world.ts'

let world: World
let service: Running
beforeAll(async () => {
  world = await createWorld()
  service = await world.up()
})
afterAll(() => world?.close())

async function cli(...args: string[]): Promise<void> {
  const { code, err } = await hooktide(args, { env: world.env })
  expect([args.join(' '), code, err]).toEqual([args.join(' '), 0, ''])
}

test('an event produced right after `subscriptions add` was acknowledged is delivered to it, twenty times of twenty', async () => {
  for (let i = 0; i < 20; i++) {
    const url = world.endpoint.at(`/fresh-${i}`)
    await cli(
      'subscriptions',
      'add',
      '--id',
      `fresh-${i}`,
      '--url',
      url,
      '--types',
      `fresh.${i}`,
      '--secret',
      'env:HOOKTIDE_SECRET_TEST',
    )
    await world.produce({ id: `f${i}`, type: `fresh.${i}` })
  }
  const missing = () =>
    Array.from({ length: 20 }, (_, i) => `/fresh-${i}`).filter((path) => world.endpoint.delivered(path).length !== 1)
  await until('each got its event', () => missing().length === 0, { seen: missing })
})

test('a changed URL is used at once, by queued deliveries too, and the attempt says which it was', async () => {
  const held = gate<{ status: number }>()
  const old = world.endpoint.at('/old', () => held.opened)
  await world.subscribe(world.subscription('moved', old, { types: ['moved'], maxInFlight: 1 }))
  await world.produce(...[0, 1, 2].map((i) => ({ id: `m${i}`, type: 'moved' })))
  await until(
    'one is open, two wait',
    () => world.endpoint.open('/old') === 1 && service.service.pipeline.executor.ready >= 2,
  )
  await cli('subscriptions', 'update', 'moved', '--url', world.endpoint.at('/new'))
  await world.produce({ id: 'm3', type: 'moved' })
  await until('the router has routed it', async () =>
    (await world.read(world.topics.deliveries)).some(({ headers }) => String(headers['ht-event']) === 'm3'),
  )
  held.open({ status: 200 })
  await until('the rest came to the new one', () => world.endpoint.delivered('/new').length === 3)
  expect(world.endpoint.of('/old')).toHaveLength(1)
  const attempts = await until('all four in the log', async () => {
    const found = await world.attempts('moved')
    return found.length === 4 && found
  })
  expect(attempts.map(({ url }) => new URL(url).pathname).sort()).toEqual(['/new', '/new', '/new', '/old'])
})

test("a deleted subscription's queued and scheduled deliveries end `cancelled`; the open one settles", async () => {
  const held = gate<{ status: number }>()
  const url = world.endpoint.at('/deleted', (_post, nth) => (nth === 1 ? { status: 503 } : held.opened))
  await world.subscribe(world.subscription('deleted', url, { types: ['deleted'], maxInFlight: 1 }))
  await world.produce({ id: 'x0', type: 'deleted' })
  await until('the first is scheduled', async () => (await world.attempts('deleted')).length === 1)
  await world.produce(...[1, 2, 3].map((i) => ({ id: `x${i}`, type: 'deleted' })))
  await until('one is open', () => world.endpoint.open('/deleted') === 1)
  await cli('subscriptions', 'remove', 'deleted')
  await until('the service knows', () => service.service.pipeline.subscriptions.get('deleted') === undefined)
  held.open({ status: 200 })
  const attempts = await until('all four have ended', async () => {
    const found = await world.attempts('deleted')
    return (
      new Set(found.filter(({ settlement }) => settlement !== 'scheduled').map(({ eventId }) => eventId)).size === 4 &&
      found
    )
  })
  const ended = attempts.filter(({ settlement }) => settlement !== 'scheduled')
  expect(ended.map(({ settlement }) => settlement).sort()).toEqual(['cancelled', 'cancelled', 'cancelled', 'done'])
  expect(
    ended.filter(({ settlement }) => settlement === 'cancelled').map(({ outcome, status }) => [outcome, status]),
  ).toEqual([1, 2, 3].map(() => [null, null]))
  expect(world.endpoint.of('/deleted')).toHaveLength(2)
  expect(service.log.of('delivery.cancelled')).toHaveLength(3)
})

test('410 disables the subscription; each queued delivery is dead or held, none is POSTed any more, and what is held goes on in order when it is enabled', async () => {
  const held = gate<{ status: number }>()
  let back = false
  // What is POSTed before the service knows is answered only when it does: at most the next of the line.
  const known = gate<{ status: number }>()
  const url = world.endpoint.at('/gone', (_post, nth) =>
    back ? { status: 200 } : nth === 1 ? held.opened : known.opened,
  )
  await world.subscribe(world.subscription('gone', url, { types: ['gone'], ordering: 'key' }))
  const ids = Array.from({ length: 8 }, (_, i) => `g${i}`)
  await world.produce(...ids.map((id) => ({ id, type: 'gone', key: 'k' })))
  await until('the head is open', () => world.endpoint.open('/gone') === 1)
  held.open({ status: 410 })
  await until('disabled', () => service.service.pipeline.subscriptions.get('gone')?.status === 'disabled')
  known.open({ status: 410 })
  expect(service.log.of('subscription.disabled')).toMatchObject([
    { subscriptionId: 'gone', reason: expect.stringMatching(/410/) },
  ])
  const record = (await world.read(world.topics.subscriptions)).findLast(({ key }) => String(key) === 'gone')
  expect(decodeSubscription(record as NonNullable<typeof record>)).toMatchObject({
    ok: true,
    value: { status: 'disabled', statusReason: expect.stringMatching(/410/) },
  })
  // The line goes on from a dead head at once, until the subscription is known to be disabled: those are dead, too.
  const account = async () => {
    const { out } = await hooktide(['status', '--json'], { env: world.env })
    const status = JSON.parse(out) as { parked: { deliveries: number }; lanes: { ready: number }[] }
    const dead = (await world.read(world.topics.dead)).filter(({ key }) => String(key) === 'gone')
    expect(dead.map(({ headers }) => String(headers['ht-dead-reason']))).toEqual(dead.map(() => 'gone'))
    const waiting = status.lanes.reduce((sum, { ready }) => sum + ready, 0)
    return { dead: dead.map(({ value }) => String(value)), held: status.parked.deliveries, waiting }
  }
  let last = {}
  const settled = await until(
    'each is dead or held',
    async () => {
      const found = await account()
      last = found
      return (
        found.dead.length === world.endpoint.of('/gone').length &&
        found.dead.length + found.held + found.waiting === ids.length &&
        found
      )
    },
    { seen: () => last },
  )
  expect(settled.dead).toEqual(ids.slice(0, settled.dead.length))
  expect(settled.held + settled.waiting).toBeGreaterThan(0)
  expect(world.endpoint.of('/gone').map(({ body }) => body.toString())).toEqual(settled.dead)
  back = true
  await cli('subscriptions', 'update', 'gone', '--status', 'active')
  const rest = ids.slice(settled.dead.length)
  await until('they go on, in order', () => world.endpoint.delivered('/gone').length === rest.length)
  expect(
    world.endpoint
      .of('/gone')
      .slice(settled.dead.length)
      .map(({ body }) => body.toString()),
  ).toEqual(rest)
})
