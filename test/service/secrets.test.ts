import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { verifySignature } from '../../src/core/signature.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { newSigningSecret } from '../../src/secrets/make-secret.ts'
import { hooktide } from '../cli/support.ts'
import type { Posted } from './endpoint.ts'
import { createWorld, type Running, until, type World } from './world.ts'

/** Answers 400 with everything it was sent; `/token` gives a token, `/refused` none. */
async function echoServer(): Promise<{ origin: string; seen(name: string): unknown[] }> {
  const requests: IncomingHttpHeaders[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.url === '/token') {
      response.end(JSON.stringify({ access_token: accessToken, token_type: 'Bearer', expires_in: 3600 }))
      return
    }
    requests.push(request.headers)
    response.statusCode = 400
    const error = request.url === '/refused' ? 'invalid_client' : 'echo'
    response.end(JSON.stringify({ error, headers: request.headers, body }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, seen: (name) => requests.map((headers) => headers[name]) }
}

const folder = mkdtempSync(join(tmpdir(), 'hooktide-secrets-'))
const byEnv = newSigningSecret().reveal()
const byFile = newSigningSecret().reveal()
const masterBytes = newSigningSecret().reveal().slice('whsec_'.length)
const password = `p4ss-${newSigningSecret().reveal().slice(6, 26)}`
const urlToken = `t0ken-${newSigningSecret()
  .reveal()
  .slice(6, 26)
  .replaceAll(/[^A-Za-z0-9]/g, 'x')}`
const headerToken = `h34der-${newSigningSecret().reveal().slice(6, 26)}`
const basicPassword = `b4sic-${newSigningSecret().reveal().slice(6, 26)}`
const bearerToken = `b3arer-${newSigningSecret().reveal().slice(6, 26)}`
const clientSecret = `cl1ent-${newSigningSecret().reveal().slice(6, 26)}`
const accessToken = `acc3ss-${newSigningSecret()
  .reveal()
  .slice(6, 26)
  .replaceAll(/[^A-Za-z0-9]/g, 'x')}`
const clientKey = newSigningSecret().reveal().slice(6)
const legacySecret = `l3gacy-${newSigningSecret().reveal().slice(6, 26)}`
/** Made by `subscriptions add --secret kafka:new` and by rotations. */
const sealed: string[] = []

let world: World
let service: Running
/** What commands printed, but for the one place where a new secret is shown once. */
const outputs: string[] = []

async function cli(...args: string[]): Promise<string> {
  const { code, out, err } = await hooktide(args, { env: world.env })
  expect([args.join(' '), code, err.replace(/The secret is shown this once.*\n/, '')]).toEqual([args.join(' '), 0, ''])
  return out
}

async function look(...args: string[]): Promise<void> {
  const { out, err } = await hooktide(args, { env: world.env })
  expect(out.length + err.length).toBeGreaterThan(10)
  outputs.push(out, err)
}

function signedBy(secret: string, { headers, id, body }: Posted): boolean {
  return verifySignature(secret, headers['webhook-signature'] ?? '', id, headers['webhook-timestamp'] ?? '', body)
}

beforeAll(async () => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'hook.key'), byFile, { mode: 0o600 })
  world = await createWorld({
    env: {
      HOOKTIDE_SECRETS_DIRECTORY: folder,
      HOOKTIDE_SECRETS_MASTER_KEY_REF: 'env:MASTER',
      HOOKTIDE_RETRY_MAX_ATTEMPTS: '2',
      MASTER: `m1:${masterBytes}`,
      BY_ENV: byEnv,
      BASIC: basicPassword,
      BEARER: bearerToken,
      CLIENT: clientSecret,
      LEGACY: legacySecret,
      NOT_PEM: `-----BEGIN PRIVATE KEY-----\n${clientKey}\n-----END PRIVATE KEY-----`,
      // Not asked for by this broker, but resolvable as a configured password is.
      KAFKA_PASSWORD: password,
      HOOKTIDE_API_LISTEN: '127.0.0.1:0',
      HOOKTIDE_API_AUTH: 'off',
    },
  })
  service = await world.up({ roles: ['router', 'deliverer', 'api'] })
})
afterAll(async () => {
  await world?.close()
  rmSync(folder, { recursive: true, force: true })
})

test('a secret rotated by the command line while traffic flows: every POST is signed by one that is valid, by both in the overlap, and by the new one alone after it', async () => {
  const add = JSON.parse(
    await cli(
      'subscriptions',
      'add',
      '--id',
      'rot',
      '--url',
      world.endpoint.at('/rot'),
      '--types',
      'rot',
      '--secret',
      'kafka:new',
      '--json',
    ),
  )
  const first = add.newSecrets[0].secret as string
  let producing = true
  const traffic = (async () => {
    for (let i = 0; producing; i++) {
      await world.produce({ id: `rot-${i}`, type: 'rot' })
      await sleep(20)
    }
  })()
  await until('signed by the first', () => world.endpoint.of('/rot').length > 10)
  const from = Date.now()
  const rotated = JSON.parse(await cli('subscriptions', 'rotate-secret', 'rot', '--overlap', '4s', '--json'))
  const second = rotated.newSecrets[0].secret as string
  const untilMs = rotated.subscription.secrets[1].untilMs as number
  const written = Date.now()
  sealed.push(first, second)
  expect(rotated.subscription.secrets).toMatchObject([
    { ref: expect.stringMatching(/^kafka:/) },
    { untilMs: expect.any(Number) },
  ])
  await until('the overlap is over', () => (world.endpoint.of('/rot').at(-1)?.startMs ?? 0) > untilMs + 300)
  producing = false
  await traffic
  const posts = world.endpoint.of('/rot')
  const kinds = posts.map((post) => ({ post, a: signedBy(first, post), b: signedBy(second, post) }))
  expect(kinds.filter(({ a, b }) => !a && !b)).toEqual([])
  expect(kinds.filter(({ post, a, b }) => post.startMs < from && (!a || b))).toEqual([])
  const overlap = kinds.filter(({ post }) => post.startMs > written + 300 && post.startMs < untilMs - 300)
  expect(overlap.length).toBeGreaterThan(0)
  expect(overlap.filter(({ a, b }) => !(a && b))).toEqual([])
  // One that was signed before the end may arrive a moment after it.
  const after = kinds.filter(({ post }) => post.startMs > untilMs + 250)
  expect(after.length).toBeGreaterThan(0)
  expect(after.filter(({ a, b }) => a || !b)).toEqual([])
  expect(new Set(posts.map(({ id }) => id)).size).toBe(posts.length)
})

test('two secrets with windows: each signs in its own, both where they overlap, none outside: then it waits and says why', async () => {
  const now = Date.now()
  await world.subscribe(
    world.subscription('win', world.endpoint.at('/win'), {
      types: ['win'],
      secrets: [
        { ref: 'env:BY_ENV', fromMs: now - 1_000, untilMs: now + 86_400_000 },
        { ref: 'file:hook.key', fromMs: now - 1_000 },
        { ref: 'env:HOOKTIDE_SECRET_TEST', fromMs: now + 86_400_000 },
      ],
    }),
    world.subscription('none', world.endpoint.at('/none'), {
      types: ['win'],
      secrets: [{ ref: 'env:BY_ENV', untilMs: now - 1 }],
    }),
  )
  await world.produce({ id: 'w', type: 'win' })
  const post = await until('delivered', () => world.endpoint.of('/win')[0])
  expect([byEnv, byFile, world.secret].map((secret) => signedBy(secret, post))).toEqual([true, true, false])
  const [attempt] = await until('the unsigned one is an attempt that failed', async () => {
    const found = await world.attempts('none')
    return found.length > 0 && found
  })
  expect(attempt).toMatchObject({
    errorClass: 'secret',
    settlement: 'scheduled',
    error: expect.stringMatching(/no signing secret/),
  })
  expect(world.endpoint.of('/none')).toEqual([])
})

test('secrets that were planted in every place appear in no topic, log line, metric or command output after a run with failures', async () => {
  const url = `${world.endpoint.at('/leaky', () => ({ status: 500 }))}?token=${urlToken}`
  const dark = `http://127.0.0.1:1/dark?token=${urlToken}`
  const echo = await echoServer()
  const oauth2 = { tokenUrl: `${echo.origin}/token`, clientId: 'us', clientSecretRef: 'env:CLIENT' }
  const guarded: Record<string, Partial<Subscription>> = {
    basic: { auth: { basic: { username: 'ann', passwordRef: 'env:BASIC' } } },
    bearer: { auth: { bearer: { tokenRef: 'env:BEARER' } } },
    oauth2: { auth: { oauth2 } },
    'oauth2-refused': { auth: { oauth2: { ...oauth2, tokenUrl: `${echo.origin}/refused`, clientAuth: 'post' } } },
    'bad-key': { tls: { certRef: 'env:NOT_PEM', keyRef: 'env:NOT_PEM' } },
    legacy: { legacySignature: { header: 'x-old', secretRef: 'env:LEGACY' } },
  }
  await world.subscribe(
    ...Object.entries(guarded).map(([id, settings]) =>
      world.subscription(id, `${echo.origin}/echo`, { types: ['leak'], secrets: [{ ref: 'env:BY_ENV' }], ...settings }),
    ),
  )
  const more = { types: ['leak'], headers: { authorization: `Bearer ${headerToken}` } }
  await world.subscribe(
    world.subscription('leaky', url, { ...more, secrets: [{ ref: 'env:BY_ENV' }, { ref: 'file:hook.key' }] }),
    world.subscription('nobody-there', dark, { ...more, secrets: [{ ref: 'env:BY_ENV' }] }),
    // The secret itself where a reference belongs, and credentials in the URL: refused, and not echoed.
    { ...world.subscription('misplaced', url, more), secrets: [{ ref: byEnv }] } as never,
    world.subscription('credentials', `http://user:${password}@127.0.0.1/x`, more),
    // A file that is not there, a variable that is not set.
    world.subscription('lost', world.endpoint.at('/lost'), {
      ...more,
      secrets: [{ ref: 'file:none.key' }, { ref: 'env:NOT_SET' }],
    }),
  )
  await cli(
    'subscriptions',
    'add',
    '--id',
    'sealed',
    '--url',
    world.endpoint.at('/sealed', () => ({ status: 400 })),
    '--types',
    'leak',
    '--secret',
    'kafka:new',
    '--json',
  ).then((out) => sealed.push(JSON.parse(out).newSecrets[0].secret))
  await world.produce({ id: 'l1', type: 'leak' }, { id: 'l2', type: 'leak' })
  const dead = await until(
    'they die',
    async () => {
      const records = await world.read(world.topics.dead)
      const of = (id: string) => records.filter(({ key }) => key?.toString() === id).length
      return (
        of('leaky') === 2 &&
        of('sealed') === 2 &&
        of('lost') === 2 &&
        of('nobody-there') === 2 &&
        Object.keys(guarded).every((id) => of(id) === 2) &&
        records
      )
    },
    { seen: () => service.log.trouble.slice(-10) },
  )
  expect(world.endpoint.of('/leaky')[0]?.query).toBe(`token=${urlToken}`)
  expect(world.endpoint.of('/leaky')[0]?.headers.authorization).toBe(`Bearer ${headerToken}`)
  expect(service.log.of('secret.unavailable').length).toBeGreaterThan(0)

  expect(echo.seen('authorization')).toEqual(
    expect.arrayContaining([`Bearer ${bearerToken}`, `Bearer ${accessToken}`, expect.stringMatching(/^Basic /)]),
  )
  const texts = (await world.attempts()).filter(({ subscriptionId }) => subscriptionId in guarded)
  // What the endpoint sent back of it is there, without the credential.
  expect(texts.find(({ subscriptionId }) => subscriptionId === 'bearer')?.excerpt).toContain('Bearer ***')
  expect(texts.find(({ subscriptionId }) => subscriptionId === 'oauth2-refused')).toMatchObject({
    errorClass: 'auth',
    error: expect.stringContaining('the token server answered 400 (invalid_client)'),
  })
  expect(texts.find(({ subscriptionId }) => subscriptionId === 'bad-key')).toMatchObject({ errorClass: 'secret' })

  for (const id of ['leaky', 'sealed', 'nobody-there', ...Object.keys(guarded)]) {
    await look('subscriptions', 'show', id, '--json')
    await look('subscriptions', 'show', id)
  }
  await look('subscriptions', 'list', '--json')
  await look('subscriptions', 'list')
  await look('subscriptions', 'show', 'misplaced')
  await look('dead', 'list', '--json')
  await look('dead', 'list')
  await look('dead', 'show', String(dead[0]?.headers['ht-id']))
  await look('dead', 'show', String(dead[0]?.headers['ht-id']), '--json')
  await look('status', '--json')
  await look('status')
  await look('doctor', '--json')
  await look('doctor')
  await look('config', 'show')
  await look('config', 'show', '--json')
  await look('topics', 'verify')
  // With a password for the broker, which this one does not ask for: what fails must not show it either.
  const withPassword = {
    ...world.env,
    HOOKTIDE_KAFKA_SASL_MECHANISM: 'plain',
    HOOKTIDE_KAFKA_SASL_USERNAME: 'hooktide',
    HOOKTIDE_KAFKA_SASL_PASSWORD_REF: 'env:KAFKA_PASSWORD',
  }
  for (const args of [['config', 'show'], ['doctor'], ['status']]) {
    const { out, err } = await hooktide(args, { env: withPassword })
    expect(out + err).not.toBe('')
    outputs.push(out, err)
  }
  const { text: metrics } = await service.page('/metrics')
  const base = `http://127.0.0.1:${service.service.apiPort}`
  const deadId = String(dead[0]?.headers['ht-id'])
  const subscriptionPaths = ['leaky', 'sealed', 'misplaced', 'nobody-there', ...Object.keys(guarded)].map(
    (id) => `/v1/subscriptions/${id}`,
  )
  const answers: { path: string; status: number; text: string }[] = []
  const asks: [string, object?][] = [
    ...['/v1/subscriptions', '/v1/dead', `/v1/dead/${deadId}`, `/v1/deliveries/${deadId}/story`].map(
      (path): [string] => [path],
    ),
    ...['/v1/status', '/v1/topics', '/v1/lines', '/v1/tiers', '/v1/orders', '/v1/jobs', '/openapi.json'].map(
      (path): [string] => [path],
    ),
    ...subscriptionPaths.map((path): [string] => [path]),
    // Errors: what was given by mistake in the wrong place comes back in none of them.
    ['/v1/subscriptions', { id: 'x', url: 'https://example.com', secrets: [{ ref: byEnv }] }],
    ['/v1/subscriptions', { id: 'x', url: `https://u:${password}@example.com`, secrets: [{ ref: 'env:BY_ENV' }] }],
    ['/v1/subscriptions', { id: 'x', url: 'https://example.com', auth: { bearer: { tokenRef: bearerToken } } }],
    ['/v1/subscriptions', { id: 'x', url: 'https://example.com', auth: { bearer: { token: bearerToken } } }],
    ['/v1/subscriptions', { id: 'x', url: 'https://example.com', headers: { Host: headerToken } }],
  ]
  for (const [path, body] of asks) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(base + path, {
      ...(body === undefined ? {} : init),
      signal: AbortSignal.timeout(20_000),
    })
    answers.push({ path, status: response.status, text: await response.text() })
  }

  const everyTopic = Object.entries(world.topics).flatMap(([role, names]) =>
    [names].flat().map((name) => ({ role, name })),
  )
  const places: { place: string; text: string }[] = [
    { place: 'log', text: service.log.text },
    { place: 'metrics', text: metrics },
    ...answers.map(({ path, status, text }) => ({ place: `answer ${status} of ${path}`, text })),
    ...outputs.map((text) => ({ place: `command output: ${text.slice(0, 60)}`, text })),
  ]
  for (const { role, name } of everyTopic) {
    // What an operator writes into a subscription stands there: its URL and headers, and what he wrote by mistake.
    if (role === 'subscriptions') continue
    for (const { key, value, headers } of await world.read(name)) {
      const bytes = [key, value, ...Object.entries(headers).flat()].map((part) =>
        part === null ? '' : Buffer.from(part).toString('latin1'),
      )
      places.push({ place: `topic ${role}`, text: bytes.join('\n') })
    }
  }
  for (const { key, value } of await world.read(world.topics.subscriptions)) {
    if (['leaky', 'nobody-there', 'misplaced', 'credentials', 'lost'].includes(String(key))) continue
    places.push({ place: `subscription ${key}`, text: String(value) })
  }
  expect(places.length).toBeGreaterThan(60)
  // All were answered as they should be, so that there was something to look into: one record is unreadable, five requests are wrong.
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status !== 200).sort()).toEqual([400, 400, 400, 400, 409, 422])
  const bare = (secret: string) => secret.replace(/^whsec_/, '')
  const planted = [byEnv, byFile, masterBytes, password, urlToken, headerToken, world.secret, ...sealed]
    .concat(basicPassword, bearerToken, clientSecret, accessToken, legacySecret, clientKey)
    .map(bare)
  expect(sealed.length).toBeGreaterThan(0)
  const forms = planted.flatMap((secret) => [
    secret,
    Buffer.from(secret).toString('base64').slice(0, 24),
    Buffer.from(secret, 'base64').toString('hex').slice(0, 32),
    encodeURIComponent(secret),
  ])
  const hits = places.flatMap(({ place, text }) =>
    forms.filter((form) => text.includes(form)).map((form) => `${place}: ${form}`),
  )
  expect(hits).toEqual([])
}, 60_000)
