import net from 'node:net'
import type { ISocketFactory } from 'kafkajs'
import { onTestFinished } from 'vitest'

/** Kafka API keys that tests aim at. */
export const api = {
  produce: 0,
  fetch: 1,
  metadata: 3,
  initProducerId: 22,
  addPartitions: 24,
  addOffsets: 25,
  endTxn: 26,
  txnOffsetCommit: 28,
} as const

interface Rule {
  readonly apiKey: number
  readonly act: (forward: () => void, cut: () => void) => void
}

/** Between a client and a broker, message by message. Give `socketFactory` to the client: it dials the proxy whatever a broker advertises. */
export interface TcpProxy {
  readonly address: string
  readonly socketFactory: ISocketFactory
  /** The next response of this API never arrives; the connection is cut (`cut`) or stays silent (`hang`). Resolves when it has happened. */
  dropResponse(apiKey: number, then: 'cut' | 'hang'): Promise<void>
  /** The next response of this API is held until the returned function is called. */
  holdResponse(apiKey: number): { readonly held: Promise<void>; release(): void }
  /** New connections are refused while true; `cutAll` ends those that exist. */
  refuse: boolean
  cutAll(): void
  /** Requests seen so far, by API key. */
  readonly seen: ReadonlyMap<number, number>
  close(): Promise<void>
}

export async function tcpProxy(target: string): Promise<TcpProxy> {
  const [host = '', port = ''] = target.split(':')
  const sockets = new Set<net.Socket>()
  const rules: Rule[] = []
  const seen = new Map<number, number>()
  const server = net.createServer((client) => {
    if (proxy.refuse) {
      client.destroy()
      return
    }
    const broker = net.connect(Number(port), host)
    const pending = new Map<number, number>()
    const end = () => {
      sockets.delete(client)
      client.destroy()
      broker.destroy()
    }
    sockets.add(client)
    for (const socket of [client, broker]) socket.on('close', end).on('error', end)
    let silent = false
    const requests = frames((frame) => {
      const apiKey = frame.readInt16BE(4)
      seen.set(apiKey, (seen.get(apiKey) ?? 0) + 1)
      pending.set(frame.readInt32BE(8), apiKey)
    })
    client.on('data', (data) => {
      requests(data)
      broker.write(data)
    })
    broker.on(
      'data',
      frames((frame) => {
        const apiKey = pending.get(frame.readInt32BE(4))
        pending.delete(frame.readInt32BE(4))
        const index = rules.findIndex((rule) => rule.apiKey === apiKey)
        const forward = () => {
          if (!silent) client.write(frame)
        }
        if (index < 0) return forward()
        const [rule] = rules.splice(index, 1)
        if (rule !== undefined) {
          rule.act(forward, () => {
            silent = true
            end()
          })
        }
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const at = server.address() as net.AddressInfo
  const proxy: TcpProxy = {
    address: `127.0.0.1:${at.port}`,
    socketFactory: ({ onConnect }) => net.connect(at.port, '127.0.0.1', onConnect),
    dropResponse: (apiKey, then) =>
      new Promise((resolve) => {
        rules.push({
          apiKey,
          act: (_forward, cut) => {
            if (then === 'cut') cut()
            resolve()
          },
        })
      }),
    holdResponse(apiKey) {
      const gate = Promise.withResolvers<void>()
      const held = new Promise<void>((resolve) => {
        rules.push({
          apiKey,
          act: (forward) => {
            resolve()
            void gate.promise.then(forward)
          },
        })
      })
      return { held, release: gate.resolve }
    },
    refuse: false,
    cutAll() {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    seen,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  onTestFinished(() => proxy.close())
  return proxy
}

/** Calls `take` with each complete length-prefixed message, length included. */
function frames(take: (frame: Buffer) => void): (data: Buffer) => void {
  let buffered: Buffer = Buffer.alloc(0)
  return (data) => {
    buffered = buffered.length === 0 ? data : Buffer.concat([buffered, data])
    while (buffered.length >= 4) {
      const end = 4 + buffered.readInt32BE(0)
      if (buffered.length < end) return
      const frame = buffered.subarray(0, end)
      buffered = buffered.subarray(end)
      take(frame)
    }
  }
}
