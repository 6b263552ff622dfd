import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import { Pool } from 'undici'
import { addressRefusal } from '../src/core/address-guard.ts'
import { guardPolicy, strictPolicy } from '../src/core/guard-policy.ts'
import { parseSecret } from '../src/core/signature.ts'
import { checkUrl } from '../src/core/url-rules.ts'
import { buildHeaders } from '../src/http/headers.ts'
import { HttpSender } from '../src/http/sender.ts'
import type { Clock, Post } from '../src/ports.ts'

/**
 * `node bench/http.ts [seconds]`: µs per guard check and per signed header set; POSTs/s of the sender against plain
 * undici, both to a node:http receiver in a process of its own. Rounds alternate, so a busy machine hits both.
 */
const clock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}

async function measure(seconds: number): Promise<void> {
  const literals = [
    '93.184.215.14',
    '10.1.2.3',
    '2606:4700:4700::1111',
    '::ffff:169.254.169.254',
    'fe80::1',
    '223.255.255.254',
  ]
  let refused = 0
  micro('guard, per literal', 600_000, (i) => {
    if (addressRefusal(literals[i % literals.length] as string, strictPolicy) !== null) refused++
  })
  micro('URL rules', 100_000, (i) => {
    if (!checkUrl(`https://hooks${i & 7}.example.com/path?x=1`, strictPolicy).ok) refused++
  })
  const post = example('http://127.0.0.1/')
  micro('sign + headers, 1 KiB, v1', 200_000, (i) => {
    if (!buildHeaders(post, i, 'Hooktide/0.1').ok) refused++
  })
  // 3 of the 6 literals, warm-up included.
  if (refused !== 330_000) throw new Error(`${refused} refusals instead of 330000`)

  const child = fork(import.meta.filename, ['receiver'])
  try {
    const port = await new Promise<number>((resolve) => child.once('message', (message) => resolve(message as number)))
    for (const open of [64, 256]) {
      const own = await ownSender(`http://127.0.0.1:${port}/hook`)
      const plain = plainUndici(`http://127.0.0.1:${port}`, open)
      await loop(open, 500, own.post)
      await loop(open, 500, plain.post)
      const total = { own: none, plain: none }
      for (let round = 0; round < 4; round++) {
        total.own = add(total.own, await loop(open, (seconds * 1000) / 4, own.post))
        total.plain = add(total.plain, await loop(open, (seconds * 1000) / 4, plain.post))
      }
      await own.close()
      await plain.close()
      const rate = (total.own.posts / total.own.ms / (total.plain.posts / total.plain.ms)).toFixed(2)
      const cpu = (total.plain.cpuUs / total.plain.posts / (total.own.cpuUs / total.own.posts)).toFixed(2)
      console.log(
        `${open} open: sender ${show(total.own)}, plain undici ${show(total.plain)}, ratio ${rate} by time, ${cpu} by CPU`,
      )
    }
  } finally {
    child.kill()
  }
}

function micro(name: string, times: number, work: (i: number) => void): void {
  for (let i = 0; i < times / 10; i++) work(i)
  const start = performance.now()
  for (let i = 0; i < times; i++) work(i)
  console.log(`${name}: ${(((performance.now() - start) * 1000) / times).toFixed(2)} µs`)
}

interface Total {
  readonly posts: number
  readonly ms: number
  /** Of this process alone: what other processes do to the machine is not in it. */
  readonly cpuUs: number
}

const none: Total = { posts: 0, ms: 0, cpuUs: 0 }

function add(a: Total, b: Total): Total {
  return { posts: a.posts + b.posts, ms: a.ms + b.ms, cpuUs: a.cpuUs + b.cpuUs }
}

function show({ posts, ms, cpuUs }: Total): string {
  return `${Math.round((posts * 1000) / ms)}/s (${(cpuUs / posts).toFixed(0)} µs CPU each)`
}

async function loop(open: number, ms: number, post: () => Promise<void>): Promise<Total> {
  const start = performance.now()
  const cpu = process.cpuUsage()
  let posts = 0
  await Promise.all(
    Array.from({ length: open }, async () => {
      while (performance.now() - start < ms) {
        await post()
        posts++
      }
    }),
  )
  const { user, system } = process.cpuUsage(cpu)
  return { posts, ms: performance.now() - start, cpuUs: user + system }
}

async function ownSender(url: string) {
  const policy = guardPolicy({ allowHttp: true, allowPrivate: ['127.0.0.0/8'] })
  if (!policy.ok) throw new Error(policy.reason)
  const sender = new HttpSender({ clock, policy: policy.value })
  const post = example(url)
  return {
    post: async () => {
      const reply = await sender.post(post)
      if (reply.t !== 'response') throw new Error(JSON.stringify(reply))
    },
    close: () => sender.close(),
  }
}

/** The least a caller of undici has to do: send, read the body. No signature, no guard, no deadline. */
function plainUndici(origin: string, connections: number) {
  const pool = new Pool(origin, { connections, allowH2: false })
  const { body } = example(origin)
  const headers = { 'content-type': 'application/json', 'user-agent': 'plain', 'webhook-id': 'msg_1' }
  return {
    post: async () => {
      const response = await pool.request({ path: '/hook', method: 'POST', headers, body })
      await response.body.dump()
    },
    close: () => pool.close(),
  }
}

function example(url: string): Post {
  const key = parseSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
  if (!key.ok) throw new Error(key.reason)
  return {
    url,
    deliveryId: 'dlv_0123456789abcdef0123456789abcdef',
    attempt: 1,
    eventType: 'order.created',
    contentType: 'application/json',
    traceparent: null,
    body: Buffer.alloc(1024, 'x'),
    headers: undefined,
    keys: [key.value],
    timeoutMs: undefined,
  }
}

function receive(): void {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.end('ok'))
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address !== null && typeof address === 'object') process.send?.(address.port)
  })
  process.once('disconnect', () => process.exit(0))
}

if (process.argv[2] === 'receiver') receive()
else await measure(Number(process.argv[2] ?? 2))
