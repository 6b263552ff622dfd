import { once } from 'node:events'
import { createServer as createHttpServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { guardPolicy } from '../../src/core/guard-policy.ts'
import { Resolver } from '../../src/http/resolver.ts'
import { HttpSender } from '../../src/http/sender.ts'
import type { Post } from '../../src/ports.ts'
import { Certificates, certificateName } from '../conformance/certificates.ts'
import { realClock } from '../support/clock.ts'

const cleanups: (() => unknown)[] = []
let certificates: Certificates

beforeAll(async () => {
  certificates = await Certificates.create()
})

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function listen(server: Server | TcpServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

/** A CONNECT proxy that notes what it was asked for. */
async function startProxy(
  status = 200,
): Promise<{ port: number; asked: string[]; authorizations: (string | undefined)[] }> {
  const asked: string[] = []
  const authorizations: (string | undefined)[] = []
  const server = createHttpServer()
  server.on('connect', (request, socket) => {
    asked.push(request.url ?? '')
    authorizations.push(request.headers['proxy-authorization'])
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\n\r\n`)
      return
    }
    const [host, port] = (request.url ?? '').split(':')
    const out = connect(Number(port), host)
    out.on('error', () => socket.destroy()).on('close', () => socket.destroy())
    socket.on('error', () => out.destroy()).on('close', () => out.destroy())
    socket.write('HTTP/1.1 200 OK\r\nvia: test\r\n\r\n')
    socket.pipe(out).pipe(socket)
    cleanups.push(() => out.destroy())
  })
  return { port: await listen(server), asked, authorizations }
}

function sender(proxyPort: number): HttpSender {
  const policy = guardPolicy({ allowHttp: true, allowPrivate: ['127.0.0.0/8'] })
  if (!policy.ok) throw new Error(policy.reason)
  const made = new HttpSender({
    clock: realClock,
    policy: policy.value,
    tls: { ca: [certificates.ca] },
    resolver: new Resolver({
      clock: realClock,
      hosts: new Map([
        [certificateName, ['127.0.0.1']],
        ['inside.example', ['10.0.0.5']],
      ]),
      query: async () => [],
    }),
    proxy: { host: '127.0.0.1', port: proxyPort, authorization: 'Basic eDp5' },
  })
  cleanups.push(() => made.close())
  return made
}

function post(url: string): Post {
  return {
    url,
    deliveryId: 'dlv_1',
    attempt: 1,
    eventType: 'a',
    contentType: 'application/json',
    traceparent: null,
    body: Buffer.from('{}'),
    headers: undefined,
    keys: [],
    timeoutMs: undefined,
  }
}

test('http and https go through tunnels to the tested address, sockets are kept', async () => {
  const { key, cert } = await (certificates.get('good') as Promise<{ key: string; cert: string }>)
  const plain = await listen(
    createHttpServer((request, response) => request.resume().on('end', () => response.writeHead(201).end())),
  )
  const secure = await listen(
    createTlsServer({ key, cert }, (request, response) =>
      request.resume().on('end', () => response.writeHead(202).end()),
    ),
  )
  const proxy = await startProxy()
  const through = sender(proxy.port)
  for (let i = 0; i < 2; i++) {
    expect(await through.post(post(`http://127.0.0.1:${plain}/`))).toMatchObject({ t: 'response', status: 201 })
    expect(await through.post(post(`https://${certificateName}:${secure}/`))).toMatchObject({
      t: 'response',
      status: 202,
    })
  }
  expect(proxy.asked).toEqual([`127.0.0.1:${plain}`, `127.0.0.1:${secure}`])
  expect(proxy.authorizations).toEqual(['Basic eDp5', 'Basic eDp5'])
})

test('what the guard refuses never reaches the proxy', async () => {
  const proxy = await startProxy()
  const through = sender(proxy.port)
  for (const url of ['http://10.0.0.1/', 'http://inside.example/'])
    expect(await through.post(post(url))).toMatchObject({ class: 'blocked' })
  expect(proxy.asked).toEqual([])
})

test.each([403, 407, 502])('a proxy that answers %d is a connect failure', async (status) => {
  const proxy = await startProxy(status)
  const reply = await sender(proxy.port).post(post('http://127.0.0.1:9999/'))
  expect(reply).toMatchObject({
    t: 'failure',
    class: 'connect',
    detail: expect.stringContaining(`refused the tunnel to 127.0.0.1:9999: ${status}`),
  })
})

test('a proxy that closes or talks something else is a connect failure', async () => {
  const closing = await listen(
    createTcpServer((socket) => socket.on('error', () => {}).once('data', () => socket.end())),
  )
  expect(await sender(closing).post(post('http://127.0.0.1:9999/'))).toMatchObject({ class: 'connect' })
  const babbling = await listen(
    createTcpServer((socket) => void socket.on('error', () => {}).write('220 mail ESMTP\r\n\r\n')),
  )
  expect(await sender(babbling).post(post('http://127.0.0.1:9999/'))).toMatchObject({ class: 'connect' })
})
