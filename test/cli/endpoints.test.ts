import { createServer as createProxy } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { atEnd, hooktide, ownWorld } from './support.ts'

const local = { HOOKTIDE_HTTP_ALLOW_HTTP: 'true', HOOKTIDE_HTTP_ALLOW_PRIVATE: '127.0.0.1' }

test('endpoints check says allowed with exit code 0, blocked with the rule, what an operator could set and exit code 1', async () => {
  const good = await hooktide(['endpoints', 'check', 'https://public.test/hook'])
  expect([good.code, good.out]).toEqual([
    0,
    'allowed: public.test resolves to 93.184.215.14\n' +
      '  sent to    https://public.test/hook\n' +
      '  host       public.test (a name), port 443\n' +
      '  address    93.184.215.14: may be dialled\n',
  ])
  const bad = await hooktide(['endpoints', 'check', 'https://private.test/hook'])
  expect(bad.code).toBe(1)
  expect(bad.out).toContain('blocked: private.test resolves to 10.0.0.5: private (10.0.0.0/8)')
  expect(bad.out).toContain('http.allowPrivate: ["10.0.0.5"]')
  const json = await hooktide(['endpoints', 'check', 'http://0x7f.1/', '--json'])
  expect([json.code, JSON.parse(json.out)]).toMatchObject([1, { allowed: false, decided: true, addresses: [] }])
  const never = await hooktide(['endpoints', 'check', 'ftp://public.test/'])
  expect([never.code, never.out]).toMatchObject([1, expect.stringContaining('No setting lets it through')])
})

test('endpoints check --connect shakes hands, sends nothing, and names what is wrong with a certificate', async () => {
  const { certificate, key } = await (await createAuthority('Somebody')).issue('127.0.0.1')
  let requests = 0
  const server = createServer({ cert: certificate, key }, () => requests++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => server.close())
  const { port } = server.address() as AddressInfo
  const tls = await hooktide(['endpoints', 'check', `https://127.0.0.1:${port}/`, '--connect'], { env: local })
  expect([tls.code, tls.out]).toMatchObject([1, expect.stringMatching(/connection failed: tls: .*authority/)])
  const none = await hooktide(['endpoints', 'check', 'http://127.0.0.1:49151/', '--connect'], { env: local })
  expect([none.code, none.out]).toMatchObject([1, expect.stringMatching(/connection failed: connect: .*ECONNREFUSED/)])
  const plain = await hooktide(['endpoints', 'check', `http://127.0.0.1:${port}/`, '--connect'], { env: local })
  expect([plain.code, plain.out]).toMatchObject([0, expect.stringContaining('connection ok')])
  expect(requests).toBe(0)
})

test('with an egress proxy in the configuration the connection is a tunnel through it, with its credentials, and the address is tested all the same', async () => {
  const asked: (string | undefined)[][] = []
  const proxy = createProxy().on('connect', (request, socket) => {
    asked.push([request.url, request.headers['proxy-authorization']])
    socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\n\r\n')
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  atEnd(() => proxy.close())
  const env = {
    ...local,
    HOOKTIDE_HTTP_PROXY_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    HOOKTIDE_HTTP_PROXY_CREDENTIALS_REF: 'env:PROXY',
    PROXY: 'us:secret',
  }
  const through = await hooktide(['endpoints', 'check', 'http://public.test:8080/', '--connect'], { env })
  expect([through.code, through.err]).toEqual([0, ''])
  expect(asked).toEqual([['93.184.215.14:8080', `Basic ${Buffer.from('us:secret').toString('base64')}`]])
  expect((await hooktide(['endpoints', 'check', 'http://private.test/', '--connect'], { env })).code).toBe(1)
  const without = await hooktide(['endpoints', 'check', 'http://public.test/', '--connect'], {
    env: { ...env, PROXY: '' },
  })
  expect([without.code, without.err]).toMatchObject([1, expect.stringContaining('http.proxy.credentialsRef')])
  expect(asked.length).toBe(1)
})

test('a subscription whose name leads inside is refused when it is added, changed or applied, with the reason, and not written', async () => {
  const env = await ownWorld({ HOOK: `whsec_${Buffer.alloc(32).toString('base64')}` })
  const add = (id: string, url: string) =>
    hooktide(['subscriptions', 'add', '--id', id, '--url', url, '--secret', 'env:HOOK'], { env })
  const refused = await add('inside', 'https://private.test/hook')
  expect([refused.code, refused.err]).toMatchObject([
    2,
    expect.stringContaining('inside: url (https://private.test/hook): private.test resolves to 10.0.0.5: private'),
  ])
  expect((await add('good', 'https://public.test/hook')).code).toBe(0)
  const changed = await hooktide(['subscriptions', 'update', 'good', '--url', 'https://private.test/'], { env })
  expect([changed.code, changed.err]).toMatchObject([2, expect.stringContaining('10.0.0.5')])
  const file = JSON.stringify([{ id: 'other', url: 'https://private.test/x', secrets: [{ ref: 'env:HOOK' }] }])
  const applied = await hooktide(['subscriptions', 'apply', '-'], { env, input: file })
  expect([applied.code, applied.err]).toMatchObject([2, expect.stringContaining('other: url')])
  const { subscriptions } = JSON.parse((await hooktide(['subscriptions', 'list', '--json'], { env })).out)
  expect(subscriptions.map(({ id, url }: { id: string; url: string }) => [id, url])).toEqual([
    ['good', 'https://public.test/hook'],
  ])
})
