import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, Socket, type Server as TcpServer } from 'node:net'
import { rootCertificates } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { guardPolicy } from '../../src/core/guard-policy.ts'
import type { Reply } from '../../src/core/outcome.ts'
import { parseSecret, verifySignature } from '../../src/core/signature.ts'
import { createNetwork } from '../../src/http/network.ts'
import { Resolver } from '../../src/http/resolver.ts'
import { HttpSender, type SenderOptions } from '../../src/http/sender.ts'
import type { Post } from '../../src/ports.ts'
import { realClock } from '../support/clock.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function makeSender(options: Partial<SenderOptions> = {}): HttpSender {
  const policy = guardPolicy({ allowHttp: true, allowPrivate: ['127.0.0.0/8', 'localhost'] })
  if (!policy.ok) throw new Error(policy.reason)
  const sender = new HttpSender({ clock: realClock, policy: policy.value, ...options })
  cleanups.push(() => {
    sender.abortAll('test over')
    return sender.close()
  })
  return sender
}

function makePost(url: string, more: Partial<Post> = {}): Post {
  const key = parseSecret(secret)
  if (!key.ok) throw new Error(key.reason)
  return {
    url,
    deliveryId: 'dlv_1',
    attempt: 3,
    eventType: 'order.created',
    contentType: 'application/json',
    traceparent: null,
    body: Buffer.from('{"a":1}'),
    headers: undefined,
    keys: [key.value],
    timeoutMs: undefined,
    ...more,
  }
}

async function listen(server: Server | TcpServer): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

/** Accepts and never answers; remembers its sockets. */
async function silentServer(): Promise<{ url: string; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server = createTcpServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {}).resume()
  })
  cleanups.push(() => sockets.forEach((socket) => void socket.destroy()))
  return { url: await listen(server), sockets }
}

async function eventually(fact: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (fact()) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`never: ${what}`)
}

test("a POST carries the bytes, the Standard Webhooks headers and the subscription's own", async () => {
  let seen: { headers: NodeJS.Dict<string | string[]>; body: Buffer; method: string; url: string } | undefined
  const url = await listen(
    createHttpServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray())
      seen = { headers: request.headers, body, method: request.method ?? '', url: request.url ?? '' }
      response.writeHead(202).end('thanks')
    }),
  )
  const body = Buffer.from([0, 255, 10, 13, 128])
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const reply = await makeSender().post(
    makePost(`${url}/hook?a=b#c`, { body, traceparent, headers: { 'X-Own': 'yes' } }),
  )
  expect(reply).toMatchObject({ t: 'response', status: 202, retryAfter: null, excerpt: Buffer.from('thanks') })
  expect(seen).toMatchObject({ method: 'POST', url: '/hook?a=b', body })
  expect(seen?.headers).toMatchObject({
    host: url.slice(7),
    'content-type': 'application/json',
    'content-length': '5',
    'user-agent': 'Hooktide/0.1',
    'webhook-id': 'dlv_1',
    'idempotency-key': 'dlv_1',
    'x-delivery-attempt': '3',
    'x-event-type': 'order.created',
    'x-own': 'yes',
    traceparent,
  })
  expect(seen?.headers['accept-encoding']).toBeUndefined()
  const { 'webhook-signature': signature, 'webhook-timestamp': timestamp } = seen?.headers ?? {}
  expect(verifySignature(secret, String(signature), 'dlv_1', String(timestamp), body)).toBe(true)
  expect(Math.abs(Number(timestamp) * 1000 - Date.now())).toBeLessThan(5000)
})

test.each([
  [{ contentType: 'a\r\nb: c' }, 'content-type', 'application/octet-stream'],
  [{ eventType: 'bestellung.größe\n' }, 'x-event-type', 'bestellung.gr%C3%B6%C3%9Fe%0A'],
  [{ traceparent: 'nonsense\r\n' }, 'traceparent', undefined],
  [{ keys: [] }, 'webhook-signature', undefined],
  [
    { legacySignature: { header: 'x-hub-signature-256' }, body: Buffer.from('{}') },
    'x-hub-signature-256',
    `sha256=${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      .update('{}')
      .digest('hex')}`,
  ],
])("values that an event brought can't break the request: %j", async (more, name, value) => {
  let headers: NodeJS.Dict<string | string[]> = {}
  const url = await listen(
    createHttpServer((request, response) => {
      headers = request.headers
      request.resume().on('end', () => response.end())
    }),
  )
  expect(await makeSender().post(makePost(url, more as Partial<Post>))).toMatchObject({ t: 'response', status: 200 })
  expect(headers[name]).toBe(value)
})

test('posts one after another share a socket; it is closed after its idle time and at its age', async () => {
  let connections = 0
  const server = createHttpServer((request, response) => request.resume().on('end', () => response.end()))
  server.on('connection', () => connections++)
  const url = await listen(server)
  const sender = makeSender({ keepAliveMs: 150 })
  for (let i = 0; i < 20; i++) await sender.post(makePost(url))
  expect(connections).toBe(1)
  await eventually(() => sender.stats.open === 0 && sender.stats.origins === 0, 'the idle socket is closed')
  const old = makeSender({ maxSocketAgeMs: 0 })
  for (let i = 0; i < 3; i++) await old.post(makePost(url))
  expect(connections).toBe(4)
})

test('a kept socket is used no more once its name leads elsewhere, or inside', async () => {
  const peers: string[] = []
  const server = createHttpServer((request, response) => {
    peers.push(String(request.socket.localAddress))
    request.resume().on('end', () => response.end())
  })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  cleanups.push(() => {
    server.closeAllConnections()
    server.close()
  })
  let answer = { address: '127.0.0.1', ttlS: 0 }
  const query = async (_name: string, family: 4 | 6) => (family === 4 ? [answer] : [])
  const resolver = new Resolver({ clock: realClock, query })
  const policy = guardPolicy({ allowHttp: true, allowPrivate: ['127.0.0.0/8'] })
  if (!policy.ok) throw new Error(policy.reason)
  const sender = makeSender({ resolver, policy: policy.value })
  const url = `http://hooks.example.com:${(server.address() as AddressInfo).port}`
  const post = () => sender.post(makePost(url))
  const two = () => Promise.all([post(), post()])
  await post()
  answer = { address: '127.0.0.2', ttlS: 60 }
  // The second of them has no kept socket, asks, and so it is known for the first one's, too.
  await two()
  await two()
  expect(peers.slice(0, 3).sort()).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.2'])
  expect(peers.slice(3)).toEqual(['127.0.0.2', '127.0.0.2'])

  answer = { address: '127.0.0.1', ttlS: 0 }
  const inside = makeSender({ resolver: new Resolver({ clock: realClock, query }), policy: policy.value })
  const send = () => inside.post(makePost(url))
  expect(await send()).toMatchObject({ t: 'response', status: 200 })
  answer = { address: '10.0.0.1', ttlS: 60 }
  const [kept, fresh] = await Promise.all([send(), send()])
  expect([kept.t, fresh]).toMatchObject(['response', { t: 'failure', class: 'blocked' }])
  expect(await send()).toMatchObject({ t: 'failure', class: 'blocked' })
})

test('an origin gets no more sockets than it may have; the rest wait in line', async () => {
  let open = 0
  let most = 0
  const server = createHttpServer((request, response) => {
    most = Math.max(most, ++open)
    request.resume().on('end', () =>
      setTimeout(() => {
        open--
        response.end()
      }, 5),
    )
  })
  let connections = 0
  server.on('connection', () => connections++)
  const url = await listen(server)
  const sender = makeSender({ maxSocketsPerOrigin: 4 })
  const replies = await Promise.all(Array.from({ length: 40 }, () => sender.post(makePost(url))))
  expect(replies.every((reply) => reply.t === 'response' && reply.status === 200)).toBe(true)
  expect([most, connections]).toEqual([4, 4])
})

test("a post that never got a socket is interrupted at its deadline: not the endpoint's fault", async () => {
  const { url } = await silentServer()
  const sender = makeSender({ maxSocketsPerOrigin: 1, totalTimeoutMs: 200 })
  const [first, second] = await Promise.all([
    sender.post(makePost(url)),
    sender.post(makePost(url, { timeoutMs: 100 })),
  ])
  expect(first).toMatchObject({ t: 'failure', class: 'timeout' })
  expect(second).toMatchObject({ t: 'interrupted', detail: expect.stringMatching(/no free socket/) })
})

test('the longest idle socket goes when there are more idle ones than allowed', async () => {
  const urls = await Promise.all(
    [1, 2, 3].map(() =>
      listen(createHttpServer((request, response) => request.resume().on('end', () => response.end()))),
    ),
  )
  const sender = makeSender({ maxIdleSockets: 2 })
  for (const url of urls) await sender.post(makePost(url))
  await eventually(() => sender.stats.open === 2 && sender.stats.origins === 2, 'two sockets are left')
})

test("a post's own time-out can shorten the deadline but not lengthen it", async () => {
  const { url } = await silentServer()
  const sender = makeSender({ totalTimeoutMs: 300 })
  const [short, long] = await Promise.all([
    sender.post(makePost(url, { timeoutMs: 50 })),
    sender.post(makePost(url, { timeoutMs: 60_000 })),
  ])
  for (const reply of [short, long]) expect(reply).toMatchObject({ t: 'failure', class: 'timeout' })
  expect(short.durationMs).toBeLessThan(250)
  expect(long.durationMs).toBeGreaterThanOrEqual(290)
  expect(long.durationMs).toBeLessThan(3000)
})

test('abortAll interrupts every open post, destroys the sockets, and the sender goes on', async () => {
  const { url, sockets } = await silentServer()
  const sender = makeSender()
  const posts = Array.from({ length: 10 }, () => sender.post(makePost(url)))
  await eventually(() => sockets.length === 10, 'all are connected')
  sender.abortAll('shutdown')
  for (const reply of await Promise.all(posts)) expect(reply).toMatchObject({ t: 'interrupted', detail: 'shutdown' })
  await eventually(() => sockets.every((socket) => socket.destroyed), 'all sockets are closed')
  expect(sender.stats).toEqual({ posts: 0, origins: 0, open: 0, idle: 0 })
  expect(await sender.post(makePost('http://10.0.0.1/'))).toMatchObject({ class: 'blocked' })
})

test('abortAll reaches posts that are still connecting', async () => {
  const real = createNetwork({ rootCertificates })
  const dialled: Socket[] = []
  const sender = makeSender({
    network: {
      ...real,
      tcp: () => {
        const socket = new Socket()
        dialled.push(socket)
        return socket
      },
    },
  })
  const post = sender.post(makePost('http://127.0.0.1:1234/'))
  sender.abortAll('shutdown')
  expect(await post).toMatchObject({ t: 'interrupted' })
  await eventually(
    () => dialled.length === 1 && dialled.every((socket) => socket.destroyed),
    'the dialled socket is destroyed',
  )
})

test('close waits for open posts, refuses new ones, and can be called twice', async () => {
  const url = await listen(
    createHttpServer((request, response) => request.resume().on('end', () => setTimeout(() => response.end(), 50))),
  )
  const sender = makeSender()
  const open = sender.post(makePost(url))
  const closing = Promise.all([sender.close(), sender.close()])
  expect(await sender.post(makePost(url))).toMatchObject({ t: 'interrupted', detail: 'the sender is closed' })
  expect(await open).toMatchObject({ t: 'response', status: 200 })
  await closing
})

test.each([
  ['nonsense', {}, /must begin/],
  ['http://169.254.169.254/', {}, /metadata/],
  ['http://127.0.0.1:1/', {}, /port 1/],
  ['http://127.0.0.1:9999/', { headers: { host: 'x' } }, /host/],
  ['http://127.0.0.1:9999/', { deliveryId: 'a.b' }, /dot/],
])('%s %j is refused before any connection, with the reason', async (url, more, reason) => {
  const real = createNetwork({ rootCertificates })
  let dials = 0
  const sender = makeSender({
    network: {
      ...real,
      tcp: (address, port) => {
        dials++
        return real.tcp(address, port)
      },
    },
  })
  const reply = await sender.post(makePost(url, more as Partial<Post>))
  expect(reply).toMatchObject({ t: 'failure', class: 'blocked', detail: expect.stringMatching(reason) })
  expect(dials).toBe(0)
})

test('an exception in a signing key is a reply too', async () => {
  const broken = {
    kind: 'v1' as const,
    sign: () => {
      throw new Error('no key')
    },
  }
  expect(await makeSender().post(makePost('http://127.0.0.1:9999/', { keys: [broken] }))).toMatchObject({
    t: 'failure',
    class: 'local',
    detail: 'no key',
  })
})

test('endpoints that close idle sockets just as the next POST is written lose none and get none twice', async () => {
  const seen = new Map<string, number>()
  const server = createHttpServer((request, response) => {
    const id = String(request.headers['webhook-id'])
    request.resume().on('end', () => {
      seen.set(id, (seen.get(id) ?? 0) + 1)
      response.end()
      // The most hostile moment: right after the answer.
      setTimeout(() => request.socket.destroy(), Number(id.slice(4)) % 7)
    })
  })
  const url = await listen(server)
  const sender = makeSender()
  const replies: Reply[] = []
  for (let i = 0; i < 150; i++) {
    replies.push(await sender.post(makePost(url, { deliveryId: `dlv_${i}` })))
    await new Promise((resolve) => setTimeout(resolve, i % 5))
  }
  for (const reply of replies)
    expect(reply.t === 'response' || (reply.t === 'failure' && reply.class === 'reset')).toBe(true)
  expect([...seen.values()].filter((times) => times > 1)).toEqual([])
  expect(replies.filter((reply) => reply.t === 'response').length).toBeLessThanOrEqual(seen.size)
})

test('no more than 4 KiB of a body is kept, no more than 64 KiB is read', async () => {
  let written = 0
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write('HTTP/1.1 503 X\r\ntransfer-encoding: chunked\r\n\r\n')
      const chunk = Buffer.from(`4000\r\n${'x'.repeat(0x4000)}\r\n`)
      const pump = () => {
        while (!socket.destroyed && socket.write(chunk)) written += chunk.length
      }
      socket.on('drain', pump)
      pump()
    })
  })
  const sender = makeSender()
  const reply = await sender.post(makePost(await listen(server)))
  expect(reply).toMatchObject({ t: 'response', status: 503, excerpt: Buffer.alloc(4096, 'x') })
  await eventually(() => sender.stats.open === 0, 'the socket is closed')
  expect(written).toBeLessThan(32 * 1024 * 1024)
})
