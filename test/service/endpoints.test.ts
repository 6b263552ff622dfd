import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Subscription } from '../../src/core/subscription.ts'
import { createWorld, type Running, until, type World } from './world.ts'

let world: World
let service: Running

beforeAll(async () => {
  world = await createWorld({ env: { CLIENT: 'client-secret', HOOKTIDE_HTTP_USER_AGENT_SUFFIX: '(+https://us.test)' } })
  service = await world.up()
})
afterAll(() => world?.close())

/** Gives T1, T2, …; `down`: 503. */
async function tokenServer() {
  const state = { given: 0, down: false }
  const server = createServer((request, response) => {
    request.resume()
    if (state.down) response.statusCode = 503
    else state.given++
    response.end(state.down ? '{}' : JSON.stringify({ access_token: `T${state.given}`, expires_in: 3600 }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { state, tokenUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token` }
}

test('OAuth2: one token for all deliveries, a withdrawn one is replaced once and nothing is lost, a dead token server is a reason to retry that holds nobody else', async () => {
  const { state, tokenUrl } = await tokenServer()
  let valid = 'T1'
  const url = world.endpoint.at('/oauth', ({ headers }) => ({
    status: headers.authorization === `Bearer ${valid}` ? 200 : 401,
  }))
  const auth = { oauth2: { tokenUrl, clientId: 'us', clientSecretRef: 'env:CLIENT' } }
  await world.subscribe(
    world.subscription('oauth', url, { types: ['oauth'], auth }),
    world.subscription('beside', world.endpoint.at('/beside'), { types: ['oauth'] }),
  )
  const ids = (prefix: string, n: number) =>
    Array.from({ length: n }, (_, i) => ({ id: `${prefix}${i}`, type: 'oauth' }))
  await world.produce(...ids('a', 50))
  await until('all are delivered', () => world.endpoint.delivered('/oauth').length === 50)
  expect(state.given).toBe(1)
  expect(world.endpoint.of('/oauth')[0]?.headers['user-agent']).toBe('Hooktide (+https://us.test)')

  valid = 'T2'
  await world.produce(...ids('b', 20))
  await until('all are delivered with the next token', () => world.endpoint.delivered('/oauth').length === 70, {
    seen: () => service.log.trouble.slice(-5),
  })
  expect(state.given).toBe(2)
  expect((await world.attempts('oauth')).filter(({ settlement }) => settlement === 'dead')).toEqual([])

  state.down = true
  valid = 'T3'
  await world.produce(...ids('c', 5))
  const failed = await until('attempts without a token', async () =>
    (await world.attempts('oauth')).find(({ errorClass }) => errorClass === 'auth'),
  )
  expect(failed).toMatchObject({
    settlement: 'scheduled',
    error: 'auth: no access token can be had now: the token server answered 503',
  })
  await until('the others are not held up', () => world.endpoint.delivered('/beside').length === 75)
  state.down = false
  await until('all are delivered once tokens are back', () => world.endpoint.delivered('/oauth').length === 75)
}, 60_000)

test('a rate limit holds for a backlog, retries included, while another subscription has all it can get', async () => {
  let n = 0
  const slow = world.endpoint.at('/slow', () => ({ status: n++ % 5 === 4 ? 503 : 200 }))
  const limited: Partial<Subscription> = { types: ['rate'], rateLimit: { perSecond: 20, burst: 2 } }
  await world.subscribe(
    world.subscription('slow', slow, limited),
    world.subscription('free', world.endpoint.at('/free'), { types: ['rate'] }),
  )
  await world.produce(...Array.from({ length: 100 }, (_, i) => ({ id: `r${i}`, type: 'rate' })))
  await until('the other one is done', () => world.endpoint.delivered('/free').length === 100)
  expect(world.endpoint.of('/slow').length).toBeLessThan(80)
  await until('all are delivered', () => new Set(world.endpoint.delivered('/slow')).size === 100)
  const starts = world.endpoint.of('/slow').map(({ startMs }) => startMs)
  for (let i = 0; i < starts.length; i++) {
    const within = starts.filter((at) => at >= (starts[i] as number) && at < (starts[i] as number) + 1000).length
    // Rate, burst, and what a busy machine delays on its way.
    expect(within).toBeLessThanOrEqual(20 + 2 + 4)
  }
}, 60_000)

test('a URL that is changed between two attempts is used at once, and the attempt says that it is another than was matched', async () => {
  const { id, ...rest } = world.subscription(
    'moved',
    world.endpoint.at('/moved-from', () => ({ status: 503 })),
    {
      types: ['moved'],
    },
  )
  await world.subscribe({ id, ...rest } as Subscription)
  await world.produce({ id: 'm1', type: 'moved' })
  await until('the first has failed', async () => (await world.attempts('moved')).length >= 1)
  await world.subscribe({ id, ...rest, url: world.endpoint.at('/moved-to') } as Subscription)
  await until('it comes to the new one', () => world.endpoint.delivered('/moved-to').length === 1)
  const attempts = await until('it is recorded', async () => {
    const all = await world.attempts('moved')
    return all.at(-1)?.settlement === 'done' ? all : null
  })
  const seen = attempts.map((one) => [one.url.replace(/^.*\//, ''), (one as { urlChanged?: boolean }).urlChanged])
  expect(seen[0]).toEqual(['moved-from', undefined])
  expect(seen.at(-1)).toEqual(['moved-to', true])
})
