import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Endpoint } from '../sim/endpoints.ts'
import { type Random, randomStream } from '../sim/random.ts'
import { describeBody, type PostEntry } from '../sim/receiver.ts'

/** Epoch ms with a fraction, never going back. */
export function wallMs(): number {
  return performance.timeOrigin + performance.now()
}

/**
 * The endpoints of a round and the journal of every POST that reached them. A worker writes its name and incarnation into
 * `User-Agent`, so that the journal knows who sent what. A POST begins here when its headers are read and ends when the
 * answer is handed to the socket: later and earlier than the worker sees it, so that what is in order here was in order there.
 */
export class JournallingReceiver {
  readonly posts: PostEntry[] = []
  readonly problems: string[] = []
  readonly #server: Server
  readonly #endpoints = new Map<string, { subscription: string; endpoint: Endpoint; n: number }>()
  readonly #random: Random

  constructor(seed: number) {
    this.#random = randomStream(seed, 'endpoints')
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      this.#take(request, response).catch(() => request.destroy())
    })
  }

  serve(path: string, subscription: string, endpoint: Endpoint): void {
    this.#endpoints.set(path, { subscription, endpoint, n: 0 })
  }

  /** Resolves with the base of every URL. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', 1024, resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get open(): number {
    return this.posts.filter(({ endMs }) => endMs === null).length
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startMs = wallMs()
    const startLocalMs = Date.now()
    const path = request.url ?? '/'
    const served = this.#endpoints.get(path)
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const [, process = 'nobody', incarnation = '0'] =
      /^chaos-(\w+)\.(\d+)$/.exec(request.headers['user-agent'] ?? '') ?? []
    if (served === undefined || process === 'nobody') {
      this.problems.push(`receiver: a POST to ${path} from "${request.headers['user-agent']}"`)
      response.writeHead(404).end()
      return
    }
    const deliveryId = String(request.headers['webhook-id'])
    const attempt = Number(request.headers['x-delivery-attempt'])
    if (request.headers['idempotency-key'] !== deliveryId || !/^v1,/.test(String(request.headers['webhook-signature'])))
      this.problems.push(`receiver: ${deliveryId} came without its idempotency key or signature`)
    const entry: PostEntry = {
      deliveryId,
      subscription: served.subscription,
      ...describeBody(Buffer.concat(chunks)),
      attempt,
      url: path,
      process,
      incarnation: Number(incarnation),
      startMs,
      startLocalMs,
      startWallMs: startLocalMs,
      endMs: null,
      acceptedMs: null,
      outcome: 'open',
      retryAfterMs: null,
    }
    this.posts.push(entry)
    const end = (outcome: PostEntry['outcome']) => {
      if (entry.endMs !== null) return
      entry.endMs = wallMs()
      entry.outcome = outcome
      if (outcome.startsWith('status 2')) entry.acceptedMs = entry.endMs
    }
    // The worker gave it up, or died.
    response.on('close', () => end('failure closed'))
    const nowMs = Date.now()
    const answer = served.endpoint({ n: ++served.n, deliveryId, attempt, nowMs, random: this.#random })
    if (answer.t === 'hang') return
    setTimeout(() => {
      if (entry.endMs !== null) return
      if (answer.t === 'failure') {
        end(`failure ${answer.class}`)
        request.socket.destroy()
        return
      }
      if (answer.retryAfter !== undefined) entry.retryAfterMs = Number(answer.retryAfter) * 1_000
      end(`status ${answer.status}`)
      const headers = answer.retryAfter === undefined ? {} : { 'retry-after': answer.retryAfter }
      response.writeHead(answer.status, headers).end(`status ${answer.status}\n`)
    }, answer.afterMs)
  }
}
