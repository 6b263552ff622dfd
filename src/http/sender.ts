import { rootCertificates } from 'node:tls'
import { type GuardPolicy, strictPolicy } from '../core/guard-policy.ts'
import type { Reply } from '../core/outcome.ts'
import type { Result } from '../core/result.ts'
import { checkUrl, type Target } from '../core/url-rules.ts'
import type { ClientIdentity, Clock, Post, Sender } from '../ports.ts'
import { ConnectionPool } from './connection-pool.ts'
import { Exchange } from './exchange.ts'
import { Failure } from './failure.ts'
import { buildHeaders } from './headers.ts'
import { createNetwork, type Network, type TlsOptions } from './network.ts'
import { type EgressProxy, throughProxy } from './proxy-network.ts'
import { type Resolver, systemResolver } from './resolver.ts'

export interface SenderOptions {
  readonly clock: Clock
  /** Default: public https endpoints only. */
  readonly policy?: GuardPolicy
  readonly userAgent?: string
  /** Lookup, TCP and TLS handshake together. */
  readonly connectTimeoutMs?: number
  /** The whole attempt; a post's own `timeoutMs` can only be shorter. */
  readonly totalTimeoutMs?: number
  /** From the request's writing to the complete header block; default: what is left of the total. */
  readonly readTimeoutMs?: number
  /** For the response body once the status is known; the outcome no longer depends on it. */
  readonly bodyTimeoutMs?: number
  readonly maxSocketsPerOrigin?: number
  readonly maxIdleSockets?: number
  readonly keepAliveMs?: number
  readonly maxSocketAgeMs?: number
  readonly tls?: TlsOptions
  /** Everything leaves through it; addresses are tested here all the same. */
  readonly proxy?: EgressProxy
  readonly resolver?: Resolver
  readonly network?: Network
}

export interface PlainRequest {
  readonly url: string
  readonly headers: string[]
  readonly body: Buffer
  readonly timeoutMs: number | undefined
  /** Most kept of the answer; 4 KiB when it is left out. */
  readonly keptBytes?: number
}

/** Kept of a response body, for people. */
const excerptBytes = 4096
const maxTargets = 10_000

export class HttpSender implements Sender {
  readonly #clock: Clock
  readonly #policy: GuardPolicy
  readonly #userAgent: string
  readonly #totalTimeoutMs: number
  readonly #readTimeoutMs: number
  readonly #bodyTimeoutMs: number
  readonly #pool: ConnectionPool
  readonly #open = new Map<Exchange, (reply: Reply) => void>()
  readonly #targets = new Map<string, Result<Target>>()
  #closed: Promise<void> | null = null
  #whenEmpty: (() => void) | null = null

  constructor(options: SenderOptions) {
    const { clock } = options
    const network = options.network ?? createNetwork({ rootCertificates, ...options.tls })
    this.#clock = clock
    this.#policy = options.policy ?? strictPolicy
    this.#userAgent = options.userAgent ?? 'Hooktide/0.1'
    this.#totalTimeoutMs = options.totalTimeoutMs ?? 13_000
    this.#readTimeoutMs = options.readTimeoutMs ?? this.#totalTimeoutMs
    this.#bodyTimeoutMs = options.bodyTimeoutMs ?? 3000
    this.#pool = new ConnectionPool({
      clock,
      policy: this.#policy,
      resolver: options.resolver ?? systemResolver(clock),
      network: options.proxy === undefined ? network : throughProxy(network, options.proxy),
      connectTimeoutMs: options.connectTimeoutMs ?? 3000,
      keepAliveMs: options.keepAliveMs ?? 4000,
      maxAgeMs: options.maxSocketAgeMs ?? 30_000,
      maxSocketsPerOrigin: options.maxSocketsPerOrigin ?? 256,
      maxIdleSockets: options.maxIdleSockets ?? 1024,
    })
  }

  get stats(): { readonly posts: number; readonly origins: number; readonly open: number; readonly idle: number } {
    return { posts: this.#open.size, ...this.#pool.stats }
  }

  post(post: Post): Promise<Reply> {
    if (this.#closed !== null)
      return Promise.resolve({ t: 'interrupted', detail: 'the sender is closed', durationMs: 0 })
    try {
      return this.#begin(post)
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      return Promise.resolve({ t: 'failure', class: 'local', detail, durationMs: 0 })
    }
  }

  /** A POST that is no delivery (a token is fetched): unsigned, under the same rules and bounds. Never rejects. */
  async request(request: PlainRequest): Promise<Reply> {
    if (this.#closed !== null) return { t: 'interrupted', detail: 'the sender is closed', durationMs: 0 }
    const target = this.#target(request.url)
    if (!target.ok) return refused(target.reason)
    return this.#exchange(target.value, {
      ...request,
      headers: ['user-agent', this.#userAgent, ...request.headers],
      client: null,
    })
  }

  abortAll(reason: string): void {
    for (const exchange of [...this.#open.keys()]) exchange.interrupt(reason)
  }

  /** Takes no more posts, lets open ones end (their deadlines bound it; `abortAll` ends them now), closes every socket. */
  close(): Promise<void> {
    this.#closed ??= new Promise<void>((resolve) => {
      this.#whenEmpty = resolve
      if (this.#open.size === 0) resolve()
    }).then(() => this.#pool.closeAll())
    return this.#closed
  }

  #begin(post: Post): Promise<Reply> {
    const target = this.#target(post.url)
    if (!target.ok) return refused(target.reason)
    const headers = buildHeaders(post, this.#clock.now(), this.#userAgent)
    if (!headers.ok) return refused(headers.reason)
    const { body, timeoutMs, access } = post
    return this.#exchange(target.value, { headers: headers.value, body, timeoutMs, client: access?.client ?? null })
  }

  #exchange(
    target: Target,
    request: Pick<PlainRequest, 'headers' | 'body' | 'timeoutMs' | 'keptBytes'> & { client: ClientIdentity | null },
  ): Promise<Reply> {
    return new Promise((resolve) => {
      const exchange = new Exchange({
        clock: this.#clock,
        target,
        headers: request.headers,
        body: request.body,
        client: request.client,
        keptBytes: request.keptBytes ?? excerptBytes,
        deadlineMs: Math.min(request.timeoutMs ?? this.#totalTimeoutMs, this.#totalTimeoutMs),
        readTimeoutMs: this.#readTimeoutMs,
        bodyTimeoutMs: this.#bodyTimeoutMs,
        settled: this.#settled,
      })
      this.#open.set(exchange, resolve)
      try {
        this.#pool.start(exchange)
      } catch (error) {
        exchange.fail(new Failure('local', error instanceof Error ? error.message : String(error)))
        exchange.line?.cut()
      }
    })
  }

  readonly #settled = (exchange: Exchange, reply: Reply): void => {
    this.#open.get(exchange)?.(reply)
    this.#open.delete(exchange)
    if (this.#open.size === 0) this.#whenEmpty?.()
  }

  #target(url: string): Result<Target> {
    let target = this.#targets.get(url)
    if (target === undefined) {
      target = checkUrl(url, this.#policy)
      if (this.#targets.size >= maxTargets) this.#targets.delete(this.#targets.keys().next().value as string)
      this.#targets.set(url, target)
    }
    return target
  }
}

/** Before any lookup or byte. */
function refused(detail: string): Promise<Reply> {
  return Promise.resolve({ t: 'failure', class: 'blocked', detail, durationMs: 0 })
}
