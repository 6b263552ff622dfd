import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ApiWorld, apiWorld } from './world.ts'

let world: ApiWorld
beforeAll(async () => {
  world = await apiWorld()
})
afterAll(() => world.close())

const writing = () => world.routes.filter(({ method, route }) => method !== 'GET' && route !== null)

async function refused(method: string, path: string, options: Parameters<ApiWorld['ask']>[2]): Promise<void> {
  const { status, type, body, text } = await world.ask(method, path, options)
  const label = `${method} ${path} ${JSON.stringify(options)?.slice(0, 300)}: ${status} ${text.slice(0, 300)}`
  expect([label, status >= 400 && status < 500]).toEqual([label, true])
  expect([label, type]).toEqual([label, 'application/problem+json; charset=utf-8'])
  expect(body).toMatchObject({
    status,
    type: expect.stringMatching(/^https:\/\//),
    instance: expect.stringMatching(/^urn:/),
  })
}

const pathOf = (url: string) => url.replace(':id', 'no-such').replace(':tier', 'no-such')
const headers = { 'if-match': '*', 'content-type': 'application/json' }

test('a body that is no JSON, or none at all, is a problem of the caller everywhere', async () => {
  const bodies = [
    '{',
    '',
    'null',
    '[1',
    '{"a":}',
    '\u0000',
    '{"__proto__":{"x":1}}',
    '{"constructor":{"prototype":{"x":1}}}',
    '"text"',
    '7',
    '[]',
    '\ufeff{}x',
  ]
  for (const { method, url, route } of writing()) {
    if (route?.body === undefined) continue
    for (const raw of bodies) {
      if (raw === '' && route.bodyOptional === true) continue
      await refused(method, pathOf(url), { raw, headers })
    }
  }
})

test('other content types, bodies that are too large, broken query strings, odd paths', async () => {
  for (const type of ['text/plain', 'application/xml', 'multipart/form-data', 'application/jsonx', ''])
    await refused('POST', '/v1/events', { raw: '{}', headers: { 'content-type': type } })
  await refused('POST', '/v1/events', { raw: Buffer.alloc(2 * 1024 * 1024, '1'), headers })
  await refused('POST', '/v1/events/batch', { raw: Buffer.alloc(9 * 1024 * 1024, '1'), headers })
  for (const query of [
    'limit=0',
    'limit=x',
    'limit=1e3x',
    'limit=1&limit=2',
    'nope=1',
    'since=-1',
    'since=2026',
    '__proto__=1',
    'cursor=x',
    'limit=',
  ].filter((q) => q !== 'since=2026'))
    await refused('GET', `/v1/dead?${query}`, {})
  for (const path of [
    '/v1/subscriptions/%00',
    '/v1/subscriptions/%zz',
    `/v1/subscriptions/${'x'.repeat(3000)}`,
    '/v1/../v1/x',
    '/v1/subscriptions/__proto__',
    '/v1/dead/1%2F2%2F3',
    '/v1/tiers/constructor/x',
  ])
    await refused('GET', path, {})
})

test('whatever JSON is sent, the answer is never a failure of the service', async () => {
  const keys = [
    'id',
    'url',
    'types',
    'secrets',
    'headers',
    'retry',
    'events',
    'data',
    'type',
    'line',
    'perSecond',
    'ids',
    'targets',
    'subscriptions',
    'toString',
    'hasOwnProperty',
  ]
  const json = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.dictionary(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 6 }),
  )
  await fc.assert(
    fc.asyncProperty(fc.nat(10_000), json, async (n, body) => {
      const targets = writing()
      const { method, url } = targets[n % targets.length] as (typeof targets)[number]
      const answer = await world.ask(method, pathOf(url), { raw: JSON.stringify(body), headers })
      const label = `${method} ${url} ${JSON.stringify(body)}: ${answer.status} ${answer.text.slice(0, 300)}`
      // This world keeps no delivery state: that is told, not failed at.
      expect([label, answer.status < 500 || answer.body.code === 'state.unavailable']).toEqual([label, true])
    }),
    { numRuns: 300 },
  )
})
