import { readdirSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { guardPolicy } from '../src/core/guard-policy.ts'
import { HttpSender } from '../src/http/sender.ts'
import { createAuthority } from '../test/support/certificates.ts'
import { clock, sleep } from './clock.ts'
import { Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { slope } from './slope.ts'

const atOnce = 50
const samples = 20

/** TLS that fails again and again is where sockets and memory have leaked elsewhere. The server runs in this process, too. */
export const tls: Scenario = {
  name: 'tls',
  bare: true,
  about: 'POSTs to endpoints whose TLS fails: unknown authority, plain text on the port, closed during the handshake',
  async run(_, settings) {
    const count = settings.deliveries ?? 10_000
    const policy = guardPolicy({ allowPrivate: ['127.0.0.1'] })
    if (!policy.ok) throw new Error(policy.reason)
    const { certificate, key } = await (await createAuthority('Nobody')).issue('127.0.0.1')
    const open = new Set<Socket>()
    const keep = (socket: Socket) => {
      open.add(socket)
      socket.on('error', () => undefined).on('close', () => open.delete(socket))
    }
    const servers = [
      createTlsServer({ cert: certificate, key }),
      createServer((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n')),
      createServer((socket) => socket.once('data', () => socket.destroy())),
    ]
    const urls: string[] = []
    for (const server of servers) {
      server.on('connection', keep).on('tlsClientError', () => undefined)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      urls.push(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    }
    const sender = new HttpSender({ clock, policy: policy.value })
    const failures = new Map<string, number>()
    const seen: { done: number; rssMb: number; descriptors: number }[] = []
    let done = 0
    const one = async (i: number) => {
      const reply = await sender.post({
        ...{ url: urls[i % urls.length] as string, deliveryId: `d${i}`, attempt: 1, eventType: 't' },
        ...{ contentType: 'text/plain', traceparent: null, body: Buffer.from('x'), headers: undefined, keys: [] },
        timeoutMs: undefined,
      })
      const what = reply.t === 'failure' ? reply.class : reply.t
      failures.set(what, (failures.get(what) ?? 0) + 1)
      done++
    }
    // The first tenth warms up.
    const warm = Math.floor(count / 10)
    try {
      for (let from = 0; from < count + warm; from += atOnce) {
        await Promise.all(Array.from({ length: atOnce }, (_, i) => one(from + i)))
        if (done < warm || done - warm < (seen.length * count) / samples) continue
        collect()
        await sleep(20)
        seen.push({ done, rssMb: process.memoryUsage().rss / 1e6, descriptors: descriptors() })
      }
      await sleep(200)
    } finally {
      await sender.close()
      for (const socket of open) socket.destroy()
      for (const server of servers) server.close()
    }
    const half = seen.slice(Math.floor(seen.length / 2))
    const rows = new Rows()
    rows.add(`${done} failed connections`, {
      'as tls': failures.get('tls') ?? 0,
      'as reset': failures.get('reset') ?? 0,
      otherwise: done - (failures.get('tls') ?? 0) - (failures.get('reset') ?? 0),
      'RSS MB after warm-up': seen[0]?.rssMb ?? null,
      'RSS MB at the end': seen.at(-1)?.rssMb ?? null,
      'RSS KB per 1000, second half': slope(half.map((each) => [each.done / 1000, each.rssMb * 1000])),
      'descriptors after warm-up': seen[0]?.descriptors ?? null,
      'descriptors at the end': seen.at(-1)?.descriptors ?? null,
      'sockets left': sender.stats.open,
    })
    const row = `${done} failed connections`
    return {
      rows: rows.all(),
      targets: [
        { row, figure: 'RSS KB per 1000, second half', atMost: 500 },
        { row, figure: 'sockets left', atMost: 0 },
      ],
    }
  },
}

/** Garbage that nobody has collected yet is no leak, and would be all there is to see in so short a run. */
const collect = (() => {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
})()

function descriptors(): number {
  return readdirSync('/proc/self/fd').length
}
