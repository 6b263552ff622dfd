import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ApiScope } from '../../src/core/api-token.ts'
import { type ApiWorld, apiWorld, tokens } from './world.ts'

let world: ApiWorld
beforeAll(async () => {
  world = await apiWorld()
  const url = 'http://127.0.0.1:18080/hook'
  for (const tenant of ['acme', 'globex']) {
    const body = { id: `${tenant}-one`, tenant, url, secrets: [{ ref: 'env:SIGNING' }] }
    const added = await world.ask('POST', '/v1/subscriptions', { body })
    if (added.status !== 201) throw new Error(added.text)
  }
})
afterAll(() => world.close())

/** A body that is right, so that nothing but who asks can be what is refused. */
const bodies: Readonly<Record<string, unknown>> = {
  'POST /v1/subscriptions': { id: 'x-one', url: 'http://127.0.0.1:18080/', secrets: [{ ref: 'env:SIGNING' }] },
  'PUT /v1/subscriptions/:id': { url: 'http://127.0.0.1:18080/' },
  'PATCH /v1/subscriptions/:id': { description: 'theirs' },
  'POST /v1/subscriptions/apply': {
    subscriptions: [{ id: 'globex-one', url: 'http://127.0.0.1:18080/', secrets: [{ ref: 'env:SIGNING' }] }],
  },
  'POST /v1/events': { type: 'a', data: 1, tenant: 'globex' },
  'POST /v1/events/batch': { events: [{ type: 'a', data: 1, tenant: 'globex' }] },
  'POST /v1/redrives': { subscription: 'globex-one' },
  'POST /v1/replays': { subscription: 'globex-one' },
  'POST /v1/replays/preview': { subscription: 'globex-one' },
  'POST /v1/redrive-jobs': { subscription: 'globex-one' },
  'POST /v1/line/release': { line: 'globex-one s' },
  'POST /v1/line/skip': { line: 'globex-one s' },
  'POST /v1/line/cancel': { line: 'globex-one s', confirmed: true },
  'POST /v1/tiers/:tier/throttle': { perSecond: 1 },
  'POST /v1/orders/clear': { ended: true },
}

const byScope: Readonly<Record<ApiScope, string>> = {
  read: tokens.reader,
  write: tokens.writer,
  replay: tokens.replayer,
  secrets: tokens.keeper,
}

interface Target {
  readonly method: string
  readonly url: string
}

function ask({ method, url }: Target, token: string | null, id = 'globex-one') {
  const path = url.replace(':id', id).replace(':tier', 'retry-10s')
  const query = url === '/v1/line' ? '?line=globex-one%20s' : ''
  const body = bodies[`${method} ${url}`]
  return world.ask(method, path + query, {
    token,
    headers: { 'if-match': '*' },
    ...(body === undefined ? {} : { body }),
  })
}

/** Every route there is, from the router itself: one that is new is in it. */
function routes() {
  return world.routes.filter(({ route }) => route !== null)
}

describe('every route', () => {
  test('but the document is made of a route with a scope', () => {
    expect(world.routes.filter(({ route }) => route === null).map(({ url }) => url)).toEqual(['/openapi.json'])
    expect(routes().length).toBeGreaterThan(35)
  })

  test('without a token, with a wrong one, and with something that is none: 401, and what to send', async () => {
    for (const token of [null, 'wrong', tokens.operator.slice(1), `${tokens.operator}x`]) {
      for (const target of routes()) {
        const answer = await ask(target, token)
        expect([target.method, target.url, answer.status, answer.body.code]).toEqual([
          ...[target.method, target.url],
          ...[401, 'unauthorized'],
        ])
        expect(answer.headers.get('www-authenticate')).toContain('Bearer')
      }
    }
  })

  test('with every scope but its own: 403', async () => {
    for (const target of routes()) {
      for (const [scope, token] of Object.entries(byScope)) {
        if (scope === target.route?.scope) continue
        const answer = await ask(target, token)
        expect([target.method, target.url, scope, answer.status]).toEqual([target.method, target.url, scope, 403])
      }
    }
  })

  test("with another tenant's token: 404 where it names something, 403 where it is for operators, and nothing of theirs", async () => {
    for (const target of routes()) {
      const { method, url, route } = target
      const answer = await ask(target, tokens.acme)
      const label = `${method} ${url}: ${answer.status} ${answer.text}`
      if (route?.operatorsOnly === true) expect([label, answer.status]).toEqual([label, 403])
      else if (url.includes('/subscriptions/:id')) expect([label, answer.status]).toEqual([label, 404])
      else if (url.startsWith('/v1/line') && url !== '/v1/lines') expect([label, answer.status]).toEqual([label, 404])
      else if (url.startsWith('/v1/events') && method === 'POST') expect([label, answer.status]).toEqual([label, 403])
      else if (url === '/v1/subscriptions/apply') expect([label, answer.status]).toEqual([label, 409])
      else if (url.includes('/deliveries')) expect([404, 503]).toContain(answer.status)
      else if (url === '/v1/dead/:id') expect([label, answer.status]).toEqual([label, 404])
      if (answer.status < 300) expect(answer.text).not.toContain('globex')
    }
    const theirs = await world.ask('GET', '/v1/subscriptions/globex-one', { token: tokens.globex })
    expect(theirs.body).toMatchObject({ tenant: 'globex', status: 'active' })
    expect('description' in theirs.body).toBe(false)
  })

  test("of a subscription of one's own tenant is let in", async () => {
    for (const token of [tokens.acme, tokens.operator]) {
      expect((await world.ask('GET', '/v1/subscriptions/acme-one', { token })).status).toBe(200)
    }
    const listed = await world.ask('GET', '/v1/subscriptions', { token: tokens.acme })
    expect(listed.body.subscriptions.map(({ tenant }: { tenant: string }) => tenant)).not.toContain('globex')
  })
})

test('a tenant writes for itself, whether it says so or not, and never for another', async () => {
  const body = { url: 'http://127.0.0.1:18080/', secrets: [{ ref: 'kafka:new' }] }
  const mine = await world.ask('POST', '/v1/subscriptions', { token: tokens.acme, body })
  expect(mine.body.subscription.tenant).toBe('acme')
  const theirs = await world.ask('POST', '/v1/subscriptions', {
    ...{ token: tokens.acme, body: { ...body, tenant: 'globex' } },
  })
  expect(theirs.status).toBe(403)
  const moved = await world.ask('PATCH', '/v1/subscriptions/acme-one', {
    ...{ token: tokens.acme, body: { tenant: 'globex' }, headers: { 'if-match': '*' } },
  })
  expect(moved.status).toBe(403)
})

test('a secret is made only for who may have one, and told once', async () => {
  const body = { url: 'http://127.0.0.1:18080/', secrets: [{ ref: 'kafka:new' }] }
  expect((await world.ask('POST', '/v1/subscriptions', { token: tokens.writer, body })).status).toBe(403)
  const made = await world.ask('POST', '/v1/subscriptions', { body })
  const [{ ref, secret }] = made.body.newSecrets
  expect([ref, secret]).toEqual([expect.stringMatching(/^kafka:/), expect.stringMatching(/^whsec_/)])
  const path = `/v1/subscriptions/${made.body.subscription.id}`
  expect((await world.ask('GET', path)).text).not.toContain(secret)
  const rotated = await world.ask('POST', `${path}/rotate-secret`, { token: tokens.keeper })
  expect(rotated.body.newSecrets).toHaveLength(1)
  expect(rotated.body.newSecrets[0].secret).not.toBe(secret)
})

test('secrets of the service can not be had sent to a URL by who was not given them', async () => {
  const stolen = { auth: { bearer: { tokenRef: 'env:MASTER' } } }
  const url = 'http://127.0.0.1:18080/'
  const change = (token: string, body: object, id = 'acme-one') =>
    world.ask('PATCH', `/v1/subscriptions/${id}`, { token, body, headers: { 'if-match': '*' } })
  for (const token of [tokens.acme, tokens.writer]) {
    const answer = await change(token, stolen)
    expect([answer.status, answer.body.errors[0].field]).toEqual([403, 'auth.bearer.tokenRef'])
    expect(answer.text).not.toContain('MASTER')
  }
  for (const ref of ['env:MASTER', 'file:/etc/passwd', 'kafka:globex-one.1']) {
    const secrets = [{ ref }]
    const asked = [
      world.ask('POST', '/v1/subscriptions', { token: tokens.acme, body: { url, secrets } }),
      change(tokens.acme, { secrets }),
      world.ask('POST', '/v1/subscriptions/acme-one/rotate-secret', { token: tokens.acme, body: { ref } }),
      world.ask('POST', '/v1/subscriptions/apply', {
        ...{ token: tokens.acme, body: { subscriptions: [{ id: 'acme-two', url, secrets }] } },
      }),
    ]
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([403, 403, 403, 403])
  }
  // What an operator has set stays when its tenant changes something else.
  expect((await change(tokens.operator, stolen)).status).toBe(200)
  expect((await change(tokens.acme, { description: 'mine' })).status).toBe(200)
})
