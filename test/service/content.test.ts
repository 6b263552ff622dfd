import { afterAll, beforeAll, expect, test } from 'vitest'
import { hooktide } from '../cli/support.ts'
import { createWorld, type Running, until, type World } from './world.ts'

let world: World
let service: Running
beforeAll(async () => {
  world = await createWorld()
  service = await world.up()
})
afterAll(() => world?.close())

async function cli(...args: string[]): Promise<string> {
  const { code, err, out } = await hooktide(args, { env: world.env })
  expect([args.join(' '), code, err]).toEqual([args.join(' '), 0, ''])
  return out
}

async function* input(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text)
}

test('a filter keeps events back; what passes is transformed at dispatch, and the log holds the original', async () => {
  const url = world.endpoint.at('/large')
  await world.subscribe(
    world.subscription('large', url, {
      types: ['order.*'],
      filter: { 'body.total': { $gte: 100 } },
      transform: { template: { id: { $path: 'body.id' }, what: { $path: 'event.type' } } },
    }),
  )
  const body = (id: string, total: number) => JSON.stringify({ id, total })
  await world.produce(
    { id: 'o1', type: 'order.created', body: body('o1', 99) },
    { id: 'o2', type: 'order.created', body: body('o2', 100) },
    { id: 'o3', type: 'order.created', body: 'no json' },
    { id: 'o4', type: 'order.paid', body: body('o4', 1_000) },
  )
  await until('both have come', () => world.endpoint.delivered('/large').length === 2)
  const posts = world.endpoint.of('/large')
  expect(posts.map((post) => JSON.parse(post.body.toString())).sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
    { id: 'o2', what: 'order.created' },
    { id: 'o4', what: 'order.paid' },
  ])
  const routed = (await world.read(world.topics.deliveries)).filter(({ key }) => String(key) === 'large')
  expect(routed.map(({ value }) => String(value)).sort()).toEqual([body('o2', 100), body('o4', 1_000)].sort())
  await until('both attempts are in the log', async () => (await world.attempts('large')).length === 2)
})

test('a body that can not be made is a dead letter with the reason, and its line goes on; onError original sends it as it is', async () => {
  const template = { id: { $path: 'body.id', $required: true } }
  await world.subscribe(
    world.subscription('strict', world.endpoint.at('/strict'), {
      types: ['t'],
      ordering: 'key',
      transform: { template },
    }),
  )
  await world.subscribe(
    world.subscription('lax', world.endpoint.at('/lax'), {
      types: ['t'],
      transform: { template, onError: 'original' },
    }),
  )
  await world.produce(
    { id: 't1', type: 't', key: 'k', body: '{}' },
    { id: 't2', type: 't', key: 'k', body: '{"id":2}' },
  )
  await until('the line goes on', () => world.endpoint.delivered('/strict').length === 1)
  await until('both have come', () => world.endpoint.delivered('/lax').length === 2)
  expect(world.endpoint.of('/strict').map(({ body }) => body.toString())).toEqual(['{"id":2}'])
  const attempts = await until('it is in the log', async () => {
    const found = await world.attempts('strict')
    return found.length === 2 && found
  })
  expect(attempts.find(({ eventId }) => eventId === 't1')).toMatchObject({
    settlement: 'dead',
    outcome: 'rejected',
    errorClass: 'body',
    error: 'transformation: body.id is required and missing',
  })
})

test('while it is disabled, hold keeps what comes, in order, and drop cancels it; enabled, the held goes on', async () => {
  const held = world.subscription('held', world.endpoint.at('/held'), {
    types: ['d'],
    ordering: 'key',
    status: 'disabled',
  })
  await world.subscribe(held)
  await world.subscribe(
    world.subscription('dropped', world.endpoint.at('/dropped'), {
      types: ['d'],
      ordering: 'key',
      status: 'disabled',
      whileDisabled: 'drop',
    }),
  )
  const ids = ['d1', 'd2', 'd3']
  await world.produce(...ids.map((id) => ({ id, type: 'd', key: 'k', body: id })))
  const cancelled = await until('each is cancelled', async () => {
    const found = await world.attempts('dropped')
    return found.length === 3 && found
  })
  expect(cancelled.map(({ settlement, error }) => [settlement, error])).toEqual(
    ids.map(() => ['cancelled', 'subscription disabled']),
  )
  expect([...world.endpoint.of('/held'), ...world.endpoint.of('/dropped')]).toEqual([])
  await cli('subscriptions', 'enable', 'held')
  await until('they come', () => world.endpoint.delivered('/held').length === 3)
  expect(world.endpoint.of('/held').map(({ body }) => body.toString())).toEqual(ids)
})

test('after a 410 nothing more is POSTed of an ordered line, and the tenant is told', async () => {
  await world.subscribe(
    world.subscription('ops', world.endpoint.at('/ops'), { types: ['hooktide.*'] }),
    // Its '*' does not mean operational events.
    world.subscription('all', world.endpoint.at('/all'), {
      types: ['*'],
      filter: { 'event.type': { $prefix: 'hooktide.' } },
    }),
    world.subscription(
      'gone',
      world.endpoint.at('/gone', () => ({ status: 410 })),
      { types: ['g'], ordering: 'key' },
    ),
  )
  await world.produce(...[1, 2, 3, 4].map((i) => ({ id: `g${i}`, type: 'g', key: 'k' })))
  await until('told of both', () => world.endpoint.delivered('/ops').length === 2)
  const told = world.endpoint.of('/ops').map((post) => JSON.parse(post.body.toString()))
  expect(told.map(({ type }) => type).sort()).toEqual(['hooktide.delivery.dead', 'hooktide.subscription.disabled'])
  expect(told.find(({ type }) => type === 'hooktide.delivery.dead').data).toMatchObject({
    subscriptionId: 'gone',
    eventId: 'g1',
    attempts: 1,
    reason: 'gone',
  })
  expect(world.endpoint.of('/gone')).toHaveLength(1)
  expect(world.endpoint.of('/all')).toEqual([])
  expect(service.service.pipeline.subscriptions.get('gone')).toMatchObject({ status: 'disabled' })
})

test('a subscription without a success for disableAfterMs is disabled, and its retries wait', async () => {
  const url = world.endpoint.at('/failing', () => ({ status: 503 }))
  await world.subscribe(world.subscription('failing', url, { types: ['f'], disableAfterMs: 1_500 }))
  await world.produce({ id: 'f1', type: 'f' }, { id: 'f2', type: 'f' })
  await until('it is disabled', () => service.service.pipeline.subscriptions.get('failing')?.status === 'disabled')
  const posts = world.endpoint.of('/failing').length
  expect(posts).toBeGreaterThan(2)
  const record = await until('that is written down', async () => {
    const found = (await world.read(world.topics.subscriptions)).findLast(({ key }) => String(key) === 'failing')
    return String(found?.value).includes('"disabled"') && String(found?.value)
  })
  expect(record).toMatch(/no success in 0 h \(\d+ attempts failed, the last: 503\)/)
  await until('no other is sent', async () => (await world.attempts('failing')).length === posts)
})

test('the row of failures outlives the process: a new one goes on from where it began', async () => {
  const url = world.endpoint.at('/outlives', () => ({ status: 503 }))
  await world.subscribe(world.subscription('outlives', url, { types: ['o'], disableAfterMs: 5_000 }))
  await world.produce({ id: 'o1', type: 'o' }, { id: 'o2', type: 'o' })
  await until('some have failed', () => world.endpoint.of('/outlives').length >= 3)
  await service.stop()
  const before = world.endpoint.of('/outlives').length
  service = await world.up()
  const record = await until('it is disabled, and that is written down', async () => {
    const found = (await world.read(world.topics.subscriptions)).findLast(({ key }) => String(key) === 'outlives')
    return String(found?.value).includes('"disabled"') && String(found?.value)
  })
  const counted = Number(/\((\d+) attempts failed/.exec(record)?.[1])
  expect(counted).toBeGreaterThan(world.endpoint.of('/outlives').length - before)
}, 60_000)

test('`subscriptions try` says what would be sent, or why nothing would', async () => {
  const args = ['subscriptions', 'try', 'large', '--type', 'order.created']
  const good = await hooktide(args, { env: world.env, stdin: input('{"id":"x","total":100}') })
  expect([good.code, good.out]).toEqual([
    0,
    'large gets it\ncontent-type: application/json\n\n{"id":"x","what":"order.created"}\n',
  ])
  const bad = await hooktide([...args, '--json'], { env: world.env, stdin: input('{"id":"x","total":5}') })
  expect([bad.code, JSON.parse(bad.out).reasons]).toEqual([1, ['filter: body.total $gte 100: it is 5']])
})
