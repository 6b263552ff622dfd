import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EndpointTls } from '../../src/core/endpoint-settings.ts'
import { hooktide } from '../cli/support.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { createWorld, type Running, until, type World } from './world.ts'

const folder = mkdtempSync(join(tmpdir(), 'hooktide-certificates-'))
let world: World
let service: Running
let authority: Authority
let server: Server
/** `PATH COMMON-NAME` of each POST that was let in. */
const seen: string[] = []

beforeAll(async () => {
  authority = await createAuthority('Endpoint CA')
  writeFileSync(join(folder, 'ca.crt'), authority.ca)
  const { certificate, key } = await authority.issue('endpoint')
  // Node's default would be to end the handshake; so do endpoints that mean it.
  server = createServer({ cert: certificate, key, ca: authority.ca, requestCert: true, rejectUnauthorized: true })
  server.on('request', (request, response) => {
    request.resume()
    seen.push(`${request.url} ${(request.socket as TLSSocket).getPeerCertificate().subject?.CN}`)
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  world = await createWorld({
    env: {
      HOOKTIDE_SECRETS_DIRECTORY: folder,
      HOOKTIDE_SECRETS_MASTER_KEY_REF: 'env:MASTER',
      MASTER: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    },
  })
  service = await world.up()
}, 60_000)
afterAll(async () => {
  await world?.close()
  server?.closeAllConnections()
  server?.close()
  rmSync(folder, { recursive: true })
})

async function subscribe(id: string, tls?: EndpointTls): Promise<void> {
  const { port } = server.address() as AddressInfo
  const more = { types: [id], ...(tls === undefined ? {} : { tls }) }
  await world.subscribe(world.subscription(id, `https://127.0.0.1:${port}/${id}`, more))
}

async function seal(id: string, text: string): Promise<void> {
  expect(await hooktide(['secrets', 'put', id], { env: world.env, input: text })).toMatchObject({ code: 0 })
}

const arrived = (...lines: string[]) =>
  until(lines.join(', '), () => lines.every((line) => seen.includes(line)), {
    seen: () => ({ seen, trouble: service.log.trouble.slice(-5) }),
  })

test('a client certificate out of files opens the endpoint that asks for one; changed, the next POST has the new one', async () => {
  const put = async (name: string) => {
    const { certificate, key } = await authority.issue(name)
    writeFileSync(join(folder, 'ann.key'), key)
    writeFileSync(join(folder, 'ann.crt'), certificate)
  }
  await put('ann-1')
  await subscribe('filed', { certRef: 'file:ann.crt', keyRef: 'file:ann.key', caRef: 'file:ca.crt' })
  await world.produce({ id: 'f1', type: 'filed' })
  await arrived('/filed ann-1')
  await put('ann-2')
  await until('the new one is used', async () => {
    await world.produce({ id: `f${Date.now()}`, type: 'filed' })
    return seen.includes('/filed ann-2')
  })
  const from = seen.indexOf('/filed ann-2')
  await world.produce({ id: 'last', type: 'filed' })
  await until('the last one has come', () => seen.length > from + 1)
  expect(new Set(seen.slice(from))).toEqual(new Set(['/filed ann-2']))
}, 60_000)

test('the same out of Kafka, sealed; a new version is used without a restart', async () => {
  const put = async (name: string) => {
    const { certificate, key } = await authority.issue(name)
    await seal('bob-key', key)
    await seal('bob-crt', certificate)
  }
  await put('bob-1')
  await subscribe('sealed', { certRef: 'kafka:bob-crt', keyRef: 'kafka:bob-key', caRef: 'file:ca.crt' })
  await world.produce({ id: 's1', type: 'sealed' })
  await arrived('/sealed bob-1')
  await put('bob-2')
  await until('the new one is used', async () => {
    await world.produce({ id: `s${Date.now()}`, type: 'sealed' })
    return seen.includes('/sealed bob-2')
  })
}, 60_000)

test('without a certificate nothing is sent: the attempt failed in TLS, and is tried again', async () => {
  await subscribe('bare')
  await world.produce({ id: 'b1', type: 'bare' })
  const attempt = await until('an attempt', async () => (await world.attempts('bare'))[0])
  expect(attempt).toMatchObject({ outcome: 'retryable', errorClass: 'tls', settlement: 'scheduled' })
  expect(seen.filter((line) => line.startsWith('/bare'))).toEqual([])
})
