import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EndpointSettings } from '../../src/core/endpoint-settings.ts'
import { guardPolicy } from '../../src/core/guard-policy.ts'
import { Secret } from '../../src/core/secret.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { EndpointAccess } from '../../src/http/endpoint-access.ts'
import { HttpSender } from '../../src/http/sender.ts'
import { type FetchedToken, fetchToken, readToken } from '../../src/http/token-request.ts'
import type { Access, AccessState, Clock } from '../../src/ports.ts'
import { createAuthority } from '../support/certificates.ts'
import { realClock } from '../support/clock.ts'

const texts = new Map<string, Secret>()
const logged: string[] = []
const cleanups: (() => unknown)[] = []
let mono = 0
const clock: Clock = { now: () => mono, mono: () => mono, after: () => () => {}, random: () => 0 }

beforeEach(() => {
  mono = 0
  logged.length = 0
  texts.clear()
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Fetch {
  resolve(result: { ok: true; value: FetchedToken } | { ok: false; reason: string }): void
}

function world() {
  const fetches: Fetch[] = []
  const changed: string[] = []
  const accesses = new EndpointAccess({
    clock,
    observer: { log: (...parts) => logged.push(JSON.stringify(parts)), count: () => {}, time: () => {} },
    secrets: { keys: () => null, text: (ref) => texts.get(ref) ?? null },
    fetchToken: () => new Promise((resolve) => fetches.push({ resolve })),
  })
  accesses.onChange((id) => changed.push(id))
  const answer = async (token: string, lifetimeMs = 100_000) => {
    fetches.at(-1)?.resolve({ ok: true, value: { token, lifetimeMs } })
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
  }
  const fail = async (reason: string) => {
    fetches.at(-1)?.resolve({ ok: false, reason })
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
  }
  return { accesses, fetches, changed, answer, fail }
}

function subscription(settings: EndpointSettings, id = 's'): Subscription {
  const base = { v: 1, id, tenant: 'default', url: 'https://a.test/', types: ['*'], ordering: 'none' } as const
  return { ...base, status: 'active', secrets: [], createdAtMs: 0, updatedAtMs: 0, ...settings }
}

function ready(state: AccessState): Access {
  if (state.t !== 'ready' || state.access === null) throw new Error(JSON.stringify(state))
  return state.access
}

const oauth = { tokenUrl: 'https://id.test/t', clientId: 'c', clientSecretRef: 'env:S' }

test('basic and bearer credentials are made once per text of their secret; a missing one is a failure that names the reference', () => {
  const { accesses } = world()
  const basic = subscription({ auth: { basic: { username: 'ann', passwordRef: 'env:P' } } })
  expect(accesses.of(basic)).toEqual({ t: 'missing', class: 'secret', detail: 'env:P can not be had now' })
  texts.set('env:P', new Secret('pä:ss'))
  const first = ready(accesses.of(basic))
  expect(first.authorization).toBe(`Basic ${Buffer.from('ann:pä:ss').toString('base64')}`)
  expect(ready(accesses.of(basic))).toBe(first)
  texts.set('env:P', new Secret('other'))
  expect(ready(accesses.of(basic)).authorization).toBe(`Basic ${Buffer.from('ann:other').toString('base64')}`)
  const bearer = subscription({ auth: { bearer: { tokenRef: 'file:t' } } })
  texts.set('file:t', new Secret('abc'))
  expect(ready(accesses.of(bearer)).authorization).toBe('Bearer abc')
  texts.set('file:t', new Secret('a\r\nx-evil: 1'))
  expect(accesses.of(bearer)).toMatchObject({ t: 'missing', detail: expect.stringContaining('no header can carry') })
})

test('one token is fetched for all that ask, told when it is there, and fetched again before it expires while the old one serves', async () => {
  const { accesses, fetches, changed, answer } = world()
  texts.set('env:S', new Secret('client-secret'))
  const s = subscription({ auth: { oauth2: oauth } })
  for (let i = 0; i < 100; i++) expect(accesses.of(s)).toEqual({ t: 'pending' })
  expect([fetches.length, changed]).toEqual([1, []])
  await answer('T1')
  expect(changed).toEqual(['s'])
  expect(ready(accesses.of(s)).authorization).toBe('Bearer T1')
  // A version of the subscription that asks for the same token keeps it.
  expect(ready(accesses.of({ ...s, description: 'new', auth: { oauth2: { ...oauth } } })).authorization).toBe(
    'Bearer T1',
  )
  mono = 74_999
  accesses.of(s)
  expect(fetches.length).toBe(1)
  mono = 75_001
  for (let i = 0; i < 10; i++) expect(ready(accesses.of(s)).authorization).toBe('Bearer T1')
  expect(fetches.length).toBe(2)
  await answer('T2')
  expect(ready(accesses.of(s)).authorization).toBe('Bearer T2')
  mono += 95_001
  expect(accesses.of(s).t).toBe('pending')
})

test('a changed client or secret has another token; subscriptions do not share theirs', async () => {
  const { accesses, fetches, answer } = world()
  texts.set('env:S', new Secret('one'))
  accesses.of(subscription({ auth: { oauth2: oauth } }))
  await answer('T1')
  accesses.of(subscription({ auth: { oauth2: oauth } }, 'other'))
  expect(fetches.length).toBe(2)
  texts.set('env:S', new Secret('two'))
  expect(accesses.of(subscription({ auth: { oauth2: oauth } })).t).toBe('pending')
  expect(fetches.length).toBe(3)
})

test('a failed fetch is a reason for the attempts of a pause that doubles, then it is tried again', async () => {
  const { accesses, fetches, changed, fail, answer } = world()
  texts.set('env:S', new Secret('x'))
  const s = subscription({ auth: { oauth2: oauth } })
  let pauseMs = 1000
  for (let n = 1; n <= 7; n++) {
    expect(accesses.of(s).t).toBe('pending')
    expect(fetches.length).toBe(n)
    await fail('the token server answered 503')
    expect(accesses.of(s)).toEqual({
      t: 'missing',
      class: 'auth',
      detail: 'no access token can be had now: the token server answered 503',
    })
    mono += pauseMs - 1
    expect(accesses.of(s).t).toBe('missing')
    mono += 2
    pauseMs = Math.min(30_000, pauseMs * 2)
  }
  expect(changed.length).toBe(7)
  accesses.of(s)
  await answer('T')
  expect(ready(accesses.of(s)).authorization).toBe('Bearer T')
})

test('a 401 drops the token once: late ones of the same token change nothing, and a fresh one that is refused too is the last word', async () => {
  const { accesses, fetches, answer } = world()
  texts.set('env:S', new Secret('x'))
  const s = subscription({ auth: { oauth2: oauth } })
  accesses.of(s)
  await answer('T1')
  const old = ready(accesses.of(s))
  accesses.accepted(s, old)
  expect([accesses.refused(s, old), accesses.refused(s, old)]).toEqual([true, true])
  expect(accesses.of(s).t).toBe('pending')
  expect(fetches.length).toBe(2)
  await answer('T2')
  const fresh = ready(accesses.of(s))
  expect(accesses.refused(s, old)).toBe(true)
  expect(ready(accesses.of(s))).toBe(fresh)
  expect([accesses.refused(s, fresh), accesses.refused(s, fresh)]).toEqual([false, false])
  expect(fetches.length).toBe(2)
  // Not for ever: it may be the token after all.
  mono += 60_001
  expect(accesses.refused(s, fresh)).toBe(true)
  expect(accesses.of(s).t).toBe('pending')
})

test('nothing that is logged about tokens holds the token or the secret', async () => {
  const { accesses, answer, fail } = world()
  texts.set('env:S', new Secret('planted-client-secret'))
  const s = subscription({ auth: { oauth2: oauth } })
  accesses.of(s)
  await fail('reason')
  mono = 2000
  accesses.of(s)
  await answer('planted-token')
  accesses.refused(s, ready(accesses.of(s)))
  expect(logged.length).toBe(3)
  expect(logged.join()).not.toContain('planted')
})

function response(status: number, body: unknown) {
  const excerpt = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return { t: 'response', status, retryAfter: null, excerpt, durationMs: 1 } as const
}

test.each([
  [
    response(200, { access_token: 'a.b-c', token_type: 'Bearer', expires_in: 60 }),
    { token: 'a.b-c', lifetimeMs: 60_000 },
  ],
  [response(200, { access_token: 'a', token_type: 'bearer', expires_in: '60' }), { token: 'a', lifetimeMs: 60_000 }],
  [response(200, { access_token: 'a' }), { token: 'a', lifetimeMs: 300_000 }],
  [response(200, { access_token: 'a', expires_in: 1e12 }), { token: 'a', lifetimeMs: 86_400_000 }],
  [response(200, { access_token: 'a', expires_in: -5 }), { token: 'a', lifetimeMs: 300_000 }],
  [response(200, { access_token: 'a b' }), 'the answer of the token server holds no usable access_token'],
  [response(200, { access_token: 'a\r\nx: y' }), 'the answer of the token server holds no usable access_token'],
  [response(200, 'null'), 'the answer of the token server holds no usable access_token'],
  [response(200, { access_token: 'a', token_type: 'mac' }), 'the token server gave a token that is no bearer token'],
  [response(401, { error: 'invalid_client' }), 'the token server answered 401 (invalid_client)'],
  [response(401, { error: 'the secret was hunter2' }), 'the token server answered 401'],
  [response(302, '<html>'), 'the token server answered 302'],
  [{ t: 'failure', class: 'timeout', detail: 'late', durationMs: 1 } as const, 'timeout: late'],
])('a token answer %o', (reply, expected) => {
  const read = readToken(reply)
  expect(read.ok ? read.value : read.reason).toEqual(expected)
})

function loopbackSender(): HttpSender {
  const policy = guardPolicy({ allowHttp: true, allowPrivate: ['127.0.0.0/8'] })
  if (!policy.ok) throw new Error(policy.reason)
  const sender = new HttpSender({ clock: realClock, policy: policy.value, totalTimeoutMs: 3000 })
  cleanups.push(() => sender.close())
  return sender
}

test.each(['basic', 'post'] as const)(
  'the token request as RFC 6749 has it, client auth %s, a token of 8 KiB included',
  async (clientAuth) => {
    const seen: { request: IncomingMessage; body: string }[] = []
    const long = 'x'.repeat(8192)
    const server = createServer(async (request, reply) => {
      let body = ''
      for await (const chunk of request) body += chunk
      seen.push({ request, body })
      reply.end(JSON.stringify({ access_token: long, token_type: 'Bearer', expires_in: 60 }))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanups.push(() => server.close())
    const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
    const client = {
      tokenUrl,
      clientId: 'a b',
      clientSecretRef: 'env:S',
      scope: 'x y',
      audience: 'https://api',
      clientAuth,
    }
    const fetched = await fetchToken(loopbackSender(), client, new Secret('s:&='))
    expect(fetched).toEqual({ ok: true, value: { token: long, lifetimeMs: 60_000 } })
    const { request, body } = seen[0] as (typeof seen)[0]
    const form = Object.fromEntries(new URLSearchParams(body))
    const plain = { grant_type: 'client_credentials', scope: 'x y', audience: 'https://api' }
    expect(form).toEqual(clientAuth === 'basic' ? plain : { ...plain, client_id: 'a b', client_secret: 's:&=' })
    const pair = Buffer.from('a+b:s%3A%26%3D').toString('base64')
    expect(request.headers.authorization).toBe(clientAuth === 'basic' ? `Basic ${pair}` : undefined)
    expect([request.method, request.headers['content-type'], request.headers['webhook-signature']]).toEqual([
      'POST',
      'application/x-www-form-urlencoded',
      undefined,
    ])
  },
)

test('a token URL is guarded like an endpoint', async () => {
  const client = { ...oauth, tokenUrl: 'http://169.254.169.254/latest/meta-data' }
  expect(await fetchToken(loopbackSender(), client, new Secret('x'))).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/^blocked: .*metadata/),
  })
})

test('a client certificate opens the endpoint that asks for it; sockets are never shared with another one or with none', async () => {
  const [authority, stranger] = [await createAuthority('Ours'), await createAuthority('Stranger')]
  const [endpoint, ann, bob, eve] = await Promise.all([
    authority.issue('127.0.0.1'),
    authority.issue('ann'),
    authority.issue('bob'),
    stranger.issue('eve'),
  ])
  const peers: string[] = []
  const server = createTlsServer(
    { cert: endpoint.certificate, key: endpoint.key, ca: authority.ca, requestCert: true, rejectUnauthorized: true },
    (request, reply) => {
      peers.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN))
      request.resume().on('end', () => reply.end('ok'))
    },
  )
  let connections = 0
  server.on('secureConnection', () => connections++).on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { accesses } = world()
  for (const [name, { certificate, key }] of Object.entries({ ann, bob, eve })) {
    texts.set(`file:${name}.crt`, new Secret(certificate))
    texts.set(`file:${name}.key`, new Secret(key))
  }
  texts.set('file:ca', new Secret(authority.ca))
  const tls = (name: string, keyOf = name) => ({
    certRef: `file:${name}.crt`,
    keyRef: `file:${keyOf}.key`,
    caRef: 'file:ca',
  })
  const sender = loopbackSender()
  const post = async (settings: EndpointSettings) => {
    const reply = await sender.post({
      url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      deliveryId: 'd',
      attempt: 1,
      eventType: 't',
      contentType: 'text/plain',
      traceparent: null,
      body: Buffer.from('x'),
      headers: undefined,
      keys: [],
      access: settings.tls === undefined ? undefined : ready(accesses.of(subscription(settings))),
      timeoutMs: undefined,
    })
    return reply.t === 'response' ? reply.status : `${reply.t} ${'class' in reply ? reply.class : ''}`
  }
  const settings = { ann: { tls: tls('ann') }, bob: { tls: tls('bob') }, eve: { tls: tls('eve') } }
  expect(await post(settings.ann)).toBe(200)
  expect(await post({ tls: tls('ann') })).toBe(200)
  expect(connections).toBe(1)
  expect(await post(settings.bob)).toBe(200)
  expect(await post(settings.ann)).toBe(200)
  expect(peers).toEqual(['ann', 'ann', 'bob', 'ann'])
  expect(connections).toBe(2)
  // Without one, or with a stranger's, nothing gets through; without caRef the endpoint's authority is unknown.
  expect(await post({})).toBe('failure tls')
  expect(await post(settings.eve)).toMatch(/^failure (tls|reset)/)
  expect(await post({ tls: { certRef: 'file:ann.crt', keyRef: 'file:ann.key' } })).toBe('failure tls')
  expect(peers.length).toBe(4)
  expect(accesses.of(subscription({ tls: tls('ann', 'bob') }))).toMatchObject({
    t: 'missing',
    class: 'secret',
    detail: expect.stringMatching(/^file:ann.crt and file:bob.key: certificate and key can not be used \(/),
  })
})

test('the legacy signature is made with its own key as it is', () => {
  const { accesses } = world()
  texts.set('env:OLD', new Secret('old secret'))
  const access = ready(accesses.of(subscription({ legacySignature: { header: 'X-Sig', secretRef: 'env:OLD' } })))
  const expected = createHmac('sha256', 'old secret').update('body').digest('base64')
  expect(access.legacyKey?.sign([Buffer.from('body')])).toBe(expected)
})
