import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { challengeAnswer, challengeType } from '../core/endpoint-challenge.ts'
import { verifySignature } from '../core/signature.ts'
import type { Clock } from '../ports.ts'

/** How an endpoint answers; without any of it: 200 at once. */
export interface Behaviour {
  /** Status of a failing answer, or of every answer when `every` is not given. */
  readonly status?: number
  /** Only every nth request of the path fails; the others get 200. */
  readonly every?: number
  /** Waits before it answers. */
  readonly delayMs?: number
  /** Reads the request, then closes the connection without an answer. Counts as failing. */
  readonly hangUp?: boolean
  /** Most good answers in a second; what is above fails. */
  readonly perSecond?: number
  /** Seconds, sent with a failing answer. */
  readonly retryAfterS?: number
}

/** `none`: no secret is known here, so nothing was checked. */
export type Verdict = 'verified' | 'unsigned' | 'bad-signature' | 'too-old' | 'none'

/** One request, as it came and was answered. */
export interface ReceivedRequest {
  /** Its place in the receiver's life, from 1. */
  readonly number: number
  /** The newest request's number when this one was answered: all that have a higher one came after the answer. */
  readonly newest: number
  /** When its body was complete, epoch ms. */
  readonly atMs: number
  readonly method: string
  readonly path: string
  /** `webhook-id`; '' where there is none. */
  readonly deliveryId: string
  /** `X-Delivery-Attempt`; null where there is none. */
  readonly attempt: number | null
  readonly eventType: string
  readonly verdict: Verdict
  /** The delivery was answered with 2xx before. */
  readonly repeated: boolean
  /** Null: it hung up. */
  readonly status: number | null
  readonly durationMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface ReceiverOptions {
  readonly clock: Clock
  /** 0: any free port. */
  readonly port: number
  readonly host?: string
  /** Secrets by path, newest first; any one that matches is enough. Empty: nothing is checked. */
  secretsOf(path: string): readonly string[]
  /** By path, exact; `*` stands for all others. */
  readonly behaviours?: ReadonlyMap<string, Behaviour>
  /** Called when a request was answered, in the order of the answers. */
  onRequest(request: ReceivedRequest): void
  /** Oldest and newest signature that counts. Default 5 minutes (Standard Webhooks). */
  readonly toleranceMs?: number
}

const maxBodyBytes = 16 * 1024 * 1024

/**
 * A webhook endpoint on this machine: verifies Standard Webhooks signatures as a receiver should, and can be told to fail.
 * What does not verify is answered with 401 and is no delivery.
 */
export class Receiver {
  readonly #options: ReceiverOptions
  readonly #behaviours: Map<string, Behaviour>
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #delivered = new Set<string>()
  readonly #requestsOf = new Map<string, number>()
  readonly #seconds = new Map<string, { second: number; taken: number }>()
  readonly #cancels = new Set<() => void>()
  #number = 0
  #open = 0

  constructor(options: ReceiverOptions) {
    this.#options = options
    this.#behaviours = new Map(options.behaviours)
    this.#server = createServer((request, response) => {
      this.#open++
      void this.#take(request, response)
        .catch(() => request.destroy())
        .finally(() => this.#open--)
    })
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
  }

  /** Resolves with the port it listens on. */
  start(): Promise<number> {
    const { port, host = '127.0.0.1' } = this.#options
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject)
        resolve((this.#server.address() as AddressInfo).port)
      })
    })
  }

  /** From now on, how `path` answers. */
  behave(path: string, behaviour: Behaviour): void {
    this.#behaviours.set(path, behaviour)
  }

  /** Requests that came and were not answered yet. */
  get open(): number {
    return this.#open
  }

  /** Closes every connection. Idempotent. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const cancel of this.#cancels) cancel()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock } = this.#options
    const startMono = clock.mono()
    const body = await bodyOf(request)
    if (body === null) return this.#answer(response, 413, undefined)
    const atMs = clock.now()
    const path = (request.url ?? '/').split('?')[0] as string
    const headers = headersOf(request)
    const deliveryId = headers['webhook-id'] ?? ''
    const verdict = this.#verify(path, headers, body, atMs)
    const behaviour = this.#behaviours.get(path) ?? this.#behaviours.get('*') ?? {}
    const nth = (this.#requestsOf.get(path) ?? 0) + 1
    this.#requestsOf.set(path, nth)
    const fails = this.#fails(path, behaviour, nth)
    const number = ++this.#number
    if (behaviour.delayMs !== undefined) await this.#sleep(behaviour.delayMs)

    const good = verdict === 'verified' || verdict === 'none'
    let status: number | null = good ? (fails ? (behaviour.status ?? 200) : 200) : 401
    if (good && fails && behaviour.hangUp === true) status = null
    const repeated = this.#delivered.has(deliveryId)
    if (status !== null && status >= 200 && status < 300 && deliveryId !== '') this.#delivered.add(deliveryId)
    if (status === null) request.socket.destroy()
    else {
      const challenged = status === 200 && headers['x-event-type'] === challengeType ? challengeAnswer(body) : null
      this.#answer(response, status, status >= 300 ? behaviour.retryAfterS : undefined, challenged ?? `${status}\n`)
    }
    const attempt = /^\d{1,9}$/.test(headers['x-delivery-attempt'] ?? '') ? Number(headers['x-delivery-attempt']) : null
    this.#options.onRequest({
      number,
      newest: this.#number,
      atMs,
      method: request.method ?? '',
      path,
      deliveryId,
      attempt,
      eventType: headers['x-event-type'] ?? '',
      verdict,
      repeated,
      status,
      durationMs: clock.mono() - startMono,
      headers,
      body,
    })
  }

  #fails(path: string, behaviour: Behaviour, nth: number): boolean {
    if (behaviour.perSecond === undefined) return behaviour.every === undefined || nth % behaviour.every === 0
    const second = Math.floor(this.#options.clock.mono() / 1000)
    const taken = this.#seconds.get(path)?.second === second ? (this.#seconds.get(path)?.taken ?? 0) : 0
    if (taken >= behaviour.perSecond) return true
    this.#seconds.set(path, { second, taken: taken + 1 })
    return false
  }

  #verify(path: string, headers: Readonly<Record<string, string>>, body: Buffer, nowMs: number): Verdict {
    const secrets = this.#options.secretsOf(path)
    if (secrets.length === 0) return 'none'
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers
    if (id === undefined || timestamp === undefined || signature === undefined) return 'unsigned'
    if (!secrets.some((secret) => verifySignature(secret, signature, id, timestamp, body))) return 'bad-signature'
    const ageMs = Math.abs(nowMs - Number(timestamp) * 1000)
    return ageMs > (this.#options.toleranceMs ?? 300_000) ? 'too-old' : 'verified'
  }

  #answer(response: ServerResponse, status: number, retryAfterS: number | undefined, body = `${status}\n`): void {
    if (retryAfterS !== undefined) response.setHeader('retry-after', String(retryAfterS))
    response.statusCode = status
    response.end(status === 204 ? undefined : body)
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#cancels.delete(stop)
        resolve()
      }
      const cancel = this.#options.clock.after(ms, done)
      const stop = () => {
        cancel()
        done()
      }
      this.#cancels.add(stop)
    })
  }
}

/** Null when it is larger than anything we would send. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function headersOf(request: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return headers
}
