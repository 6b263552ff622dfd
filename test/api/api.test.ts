import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiSchemas } from '../../src/api/schemas.ts'
import { readTopic } from '../../src/operations/read-topic.ts'
import { clusterOf } from '../cli/support.ts'
import { type Answer, type ApiWorld, apiWorld, tokens } from './world.ts'

let world: ApiWorld
beforeAll(async () => {
  world = await apiWorld()
})
afterAll(() => world.close())

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajv.addSchema({ $id: 'api', components: { schemas: apiSchemas } })

/** Is the answer as the OpenAPI document says? */
function holds(answer: Answer, status: number, schema: string): Answer {
  expect([answer.status, answer.body]).toEqual([status, expect.anything()])
  const path = `api#/components/schemas/${schema}`
  const absolute = JSON.parse(JSON.stringify(apiSchemas[schema]).replaceAll('"#/', '"api#/'))
  const validate = ajv.getSchema(path) ?? ajv.compile(absolute)
  expect(validate(answer.body) ? [] : validate.errors).toEqual([])
  return answer
}

const url = 'http://127.0.0.1:18080/hook'
const secrets = [{ ref: 'env:SIGNING' }]

describe('subscriptions', () => {
  test('are added, read at once, changed with their ETag, paused, resumed, removed', async () => {
    const added = holds(
      await world.ask('POST', '/v1/subscriptions', { body: { id: 'one', url, secrets } }),
      201,
      'WrittenSubscription',
    )
    expect(added.headers.get('location')).toBe('/v1/subscriptions/one')
    const shown = holds(await world.ask('GET', '/v1/subscriptions/one'), 200, 'Subscription')
    const etag = shown.headers.get('etag') as string
    expect(etag).toBe(added.headers.get('etag'))

    const path = '/v1/subscriptions/one'
    expect((await world.ask('PATCH', path, { body: { description: 'x' } })).status).toBe(428)
    expect(
      (await world.ask('PATCH', path, { body: { description: 'x' }, headers: { 'if-match': '"9-9"' } })).status,
    ).toBe(412)
    expect((await world.ask('PATCH', path, { body: { description: 'x' }, headers: { 'if-match': 'x' } })).status).toBe(
      400,
    )
    const changed = holds(
      await world.ask('PATCH', path, { body: { description: 'new', maxInFlight: 3 }, headers: { 'if-match': etag } }),
      200,
      'WrittenSubscription',
    )
    expect(changed.body.subscription).toMatchObject({ description: 'new', maxInFlight: 3, url })
    expect((await world.ask('PATCH', path, { body: { description: 'y' }, headers: { 'if-match': etag } })).status).toBe(
      412,
    )
    const unset = await world.ask('PATCH', path, { body: { maxInFlight: null }, headers: { 'if-match': '*' } })
    expect('maxInFlight' in unset.body.subscription).toBe(false)
    const replaced = await world.ask('PUT', path, { body: { url, types: ['a.*'] }, headers: { 'if-match': '*' } })
    expect(replaced.body.subscription).toMatchObject({ types: ['a.*'], secrets })
    expect('description' in replaced.body.subscription).toBe(false)

    holds(await world.ask('POST', `${path}/pause`, { body: { reason: 'move' } }), 200, 'WrittenSubscription')
    expect((await world.ask('GET', path)).body).toMatchObject({ status: 'paused', statusReason: 'move' })
    expect((await world.ask('POST', `${path}/test`)).status).toBe(409)
    holds(await world.ask('POST', `${path}/resume`), 200, 'WrittenSubscription')
    holds(await world.ask('POST', `${path}/test`), 202, 'TestSent')
    holds(await world.ask('GET', `${path}/health`), 200, 'SubscriptionHealth')
    holds(await world.ask('GET', '/v1/subscriptions?status=active'), 200, 'SubscriptionList')
    expect((await world.ask('DELETE', path)).status).toBe(428)
    expect((await world.ask('DELETE', path, { headers: { 'if-match': '*' } })).status).toBe(204)
    holds(await world.ask('GET', path), 404, 'Problem')
  })

  test('what is secret in them is in no answer', async () => {
    const oauth2 = { tokenUrl: `${url}/token?key=TOPSECRET`, clientId: 'us', clientSecretRef: 'env:SIGNING' }
    const body = {
      ...{ id: 'hidden', url: `${url}?token=TOPSECRET`, secrets, headers: { 'X-Key': 'TOPSECRET' } },
      auth: { oauth2 },
    }
    const added = await world.ask('POST', '/v1/subscriptions', { body })
    const shown = await world.ask('GET', '/v1/subscriptions/hidden')
    const listed = await world.ask('GET', '/v1/subscriptions')
    const refused = await world.ask('POST', '/v1/subscriptions', {
      body: { ...body, id: 'other', url: 'ftp://TOPSECRET' },
    })
    for (const answer of [added, shown, listed]) expect(answer.text).not.toContain('TOPSECRET')
    expect(refused.status).toBe(400)
    // A copy of what was shown must not be written back as stars.
    const back = await world.ask('PATCH', '/v1/subscriptions/hidden', {
      body: { headers: shown.body.headers },
      headers: { 'if-match': '*' },
    })
    expect([back.status, back.body.errors[0].field]).toEqual([422, 'headers.X-Key'])
    const auth = await world.ask('PATCH', '/v1/subscriptions/hidden', {
      body: { auth: shown.body.auth },
      headers: { 'if-match': '*' },
    })
    expect([auth.status, auth.body.errors[0].field]).toEqual([422, 'auth.oauth2.tokenUrl'])
  })

  test('two who change the same version: one wins, the other is told', async () => {
    const added = await world.ask('POST', '/v1/subscriptions', { body: { id: 'raced', url, secrets } })
    const headers = { 'if-match': added.headers.get('etag') as string }
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => world.ask('PATCH', '/v1/subscriptions/raced', { body: { maxInFlight: n }, headers })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412])
  })

  test('a list is applied, or refused whole with every problem', async () => {
    const wanted = [
      { id: 'l1', url, secrets },
      { id: 'l2', url, secrets },
    ]
    const dry = holds(
      await world.ask('POST', '/v1/subscriptions/apply', { body: { subscriptions: wanted, dryRun: true } }),
      200,
      'AppliedPlan',
    )
    expect(dry.body.counts).toMatchObject({ create: 2 })
    expect((await world.ask('GET', '/v1/subscriptions/l1')).status).toBe(404)
    await world.ask('POST', '/v1/subscriptions/apply', { body: { subscriptions: wanted } })
    expect((await world.ask('GET', '/v1/subscriptions/l2')).status).toBe(200)
    const bad = await world.ask('POST', '/v1/subscriptions/apply', { body: { subscriptions: [{ id: 'l3' }, { url }] } })
    expect(bad.status).toBe(422)
    expect(bad.body.details.length).toBeGreaterThanOrEqual(3)
  })
})

describe('events', () => {
  test('one is answered when it is in the log, with the place it has there', async () => {
    const body = { type: 'order.created', key: 'o-1', data: { n: 1 } }
    const { body: accepted } = holds(await world.ask('POST', '/v1/events', { body }), 202, 'AcceptedEvent')
    const records = await eventsOf(world)
    const record = records.find(
      ({ partition, offset }) => partition === accepted.partition && offset === accepted.offset,
    )
    expect([record?.key, record?.value, record?.type]).toEqual(['o-1', '{"n":1}', 'order.created'])
  })

  test('the same Idempotency-Key is the same event, also where the first answer is forgotten', async () => {
    const send = (key: string, n: number, token: string = tokens.operator) =>
      world.ask('POST', '/v1/events', {
        body: { type: 'once', data: { n } },
        token,
        headers: { 'idempotency-key': key },
      })
    const [first, second] = [await send('k-1', 1), await send('k-1', 1)]
    expect(second.body).toEqual(first.body)
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    const other = await send('k-1', 2)
    expect([other.status, other.body.code]).toEqual([422, 'idempotency.conflict'])
    // Another process knows nothing of the answer: the event's id says that it is the same.
    const elsewhere = await apiWorld({ ...world.env })
    try {
      const again = await elsewhere.ask('POST', '/v1/events', {
        body: { type: 'once', data: { n: 1 } },
        headers: { 'idempotency-key': 'k-1' },
      })
      expect(again.body.eventId).toBe(first.body.eventId)
    } finally {
      await elsewhere.close()
    }
    const acme = await send('k-1', 1, tokens.acme)
    expect(acme.body.eventId).not.toBe(first.body.eventId)
  })

  test('a batch is taken whole or not at all', async () => {
    const events = Array.from({ length: 50 }, (_, n) => ({ type: 'batched', id: `b-${n}`, data: n }))
    const { body } = holds(await world.ask('POST', '/v1/events/batch', { body: { events } }), 202, 'AcceptedEvents')
    expect(body.events.map(({ eventId }: { eventId: string }) => eventId)).toEqual(events.map(({ id }) => id))
    const before = (await eventsOf(world)).length
    const bad = await world.ask('POST', '/v1/events/batch', { body: { events: [...events, { type: '?', data: 1 }] } })
    expect([bad.status, bad.body.errors[0].field]).toEqual([422, 'events[50]'])
    expect((await eventsOf(world)).length).toBe(before)
  })

  test('an event of another tenant, too large, or for a topic that is none is refused', async () => {
    const send = (body: unknown, token: string = tokens.operator) => world.ask('POST', '/v1/events', { body, token })
    expect((await send({ type: 'a', tenant: 'globex', data: 1 }, tokens.acme)).status).toBe(403)
    expect((await send({ type: 'a', data: 'x'.repeat(300_000) })).status).toBe(413)
    expect((await send({ type: 'a', data: 1, topic: `${world.env.HOOKTIDE_TOPICS_PREFIX}secrets` })).status).toBe(400)
    expect((await send({ type: 'a' })).status).toBe(422)
    expect((await send({ type: 'a', dataBase64: '***' })).status).toBe(422)
  })
})

describe('the rest answers as the document says', () => {
  test.each([
    ['/v1/dead', 200, 'DeadPage'],
    ['/v1/dead/msg_none', 404, 'Problem'],
    ['/v1/lines', 200, 'LineList'],
    ['/v1/line?line=a%20s', 404, 'Problem'],
    ['/v1/tiers', 200, 'TierList'],
    ['/v1/lanes', 200, 'LaneList'],
    ['/v1/status', 200, 'Status'],
    ['/v1/topics', 200, 'TopicList'],
    ['/v1/state', 503, 'Problem'],
    ['/v1/orders', 200, 'OrderList'],
    ['/v1/events/target', 200, 'EventTarget'],
    ['/v1/deliveries', 503, 'Problem'],
    ['/v1/deliveries/msg_none/story', 404, 'Problem'],
    ['/nothing', 404, 'Problem'],
  ])('GET %s: %i', async (path, status, schema) => {
    holds(await world.ask('GET', path), status, schema)
  })

  test('a tier is paused and resumed in the name of the token', async () => {
    const paused = holds(
      await world.ask('POST', '/v1/tiers/retry-10s/pause', { body: { by: 'ada', reason: 'why' } }),
      202,
      'Ordered',
    )
    expect(paused.body.order).toMatchObject({ by: 'ada (token operator)', reason: 'why', order: 'pause' })
    const { body } = await world.ask('GET', '/v1/tiers')
    expect(body.tiers[0]).toMatchObject({ state: 'paused' })
    holds(await world.ask('POST', '/v1/tiers/retry-10s/resume'), 202, 'Ordered')
    holds(await world.ask('POST', '/v1/tiers/retry-10s/throttle', { body: {} }), 400, 'Problem')
    holds(await world.ask('POST', '/v1/tiers/nope/pause'), 404, 'Problem')
  })

  test('redriving needs ids or a filter', async () => {
    expect((await world.ask('POST', '/v1/redrives', { body: {} })).status).toBe(400)
    holds(await world.ask('POST', '/v1/redrives', { body: { all: true } }), 200, 'RedriveReport')
  })
})

test('the OpenAPI document holds every route, and every schema it names', async () => {
  const { body, status } = await world.ask('GET', '/openapi.json', { token: null })
  expect([status, body.openapi]).toEqual([200, '3.1.0'])
  const documented = Object.entries<object>(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
  )
  const served = world.routes.filter(({ url }) => url !== '/openapi.json').map(({ method, url }) => `${method} ${url}`)
  expect(documented.sort()).toEqual(served.sort())
  const named = [...JSON.stringify(body).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name as string)
  expect([...new Set(named)].filter((name) => !(name in body.components.schemas))).toEqual([])
  const ids = Object.values<Record<string, { operationId: string }>>(body.paths).flatMap((one) =>
    Object.values(one).map((o) => o.operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
})

async function eventsOf({ env }: ApiWorld) {
  const cluster = clusterOf(env)
  const reader = cluster.kafka.reader()
  const found = []
  for await (const { partition, record } of readTopic(reader, env.HOOKTIDE_TOPICS_EVENTS as string)) {
    const { offset, key, value, headers } = record
    found.push({
      partition,
      offset,
      key: key?.toString(),
      value: value?.toString(),
      type: headers['event-type']?.toString(),
    })
  }
  await cluster.close()
  return found
}
