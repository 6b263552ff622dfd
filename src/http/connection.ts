import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { Client } from 'undici'
import type { Target } from '../core/url-rules.ts'
import type { ClientIdentity } from '../ports.ts'
import { type DialOptions, dial, refusalOf } from './dial.ts'
import type { Exchange, Line } from './exchange.ts'
import { Failure } from './failure.ts'
import { InterimFilter } from './interim.ts'

export interface ConnectionOptions extends DialOptions {
  /** Idle sockets are closed after this, or earlier when the endpoint's `Keep-Alive` says so. */
  readonly keepAliveMs: number
  /** Sockets are not used longer than this, so that a changed address or policy takes hold. */
  readonly maxAgeMs: number
}

/** Told about what became of a connection, outside undici's call stack. */
export interface ConnectionOwner {
  freed(connection: Connection): void
  closed(connection: Connection): void
}

/**
 * One socket at a time to one origin, one exchange at a time on it. undici's `Client` does HTTP/1.1; opening the socket,
 * ending it and lending it out is done here, so that nothing queues inside undici and an abort always reaches the socket.
 */
export class Connection implements Line {
  readonly #options: ConnectionOptions
  readonly #owner: ConnectionOwner
  readonly #target: Target
  readonly #identity: ClientIdentity | null
  readonly route: string
  readonly #client: Client
  #exchange: Exchange | null = null
  #socket: Socket | null = null
  #filter: InterimFilter | null = null
  #openedMs = 0
  #address: string | null = null
  /** Of its name, when they were last tested. */
  #tested: readonly string[] | undefined
  #stopDial: (() => void) | null = null
  #gone = false

  constructor({ target, client, route }: Exchange, options: ConnectionOptions, owner: ConnectionOwner) {
    this.#target = target
    this.#identity = client
    this.route = route
    this.#options = options
    this.#owner = owner
    this.#client = new Client(target.origin, {
      connect: (_: unknown, done: ConnectDone) => this.#connect(done),
      allowH2: false,
      pipelining: 1,
      maxHeaderSize: 16_384,
      keepAliveTimeout: options.keepAliveMs,
      keepAliveMaxTimeout: options.keepAliveMs,
      keepAliveTimeoutThreshold: 500,
      // The exchange has the only deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
    } as Client.Options)
    // undici's types leave out that it reports its own faults as `error`, which would end the process unheard.
    ;(this.#client as EventEmitter).on('error', ignore)
  }

  /** Still connected, young enough, and nothing came in unasked. */
  get usable(): boolean {
    if (this.#gone || this.#exchange !== null) return false
    const socket = this.#socket
    if (socket === null || socket.destroyed || !socket.writable || socket.readableLength > 0) return false
    return this.#options.clock.mono() - this.#openedMs < this.#options.maxAgeMs && this.#leadsThere()
  }

  /** A name may have moved since, or lead inside now: what others have been told of it meanwhile holds for kept sockets too. */
  #leadsThere(): boolean {
    const { resolver, policy } = this.#options
    const known = this.#target.literal ? undefined : resolver.known(this.#target.hostname)
    if (known === undefined || known === this.#tested) return true
    if (this.#address === null || !known.includes(this.#address)) return false
    if (refusalOf(this.#target, known, policy) !== null) return false
    this.#tested = known
    return true
  }

  run(exchange: Exchange): void {
    this.#exchange = exchange
    exchange.line = this
    const { target, headers, body } = exchange
    this.#client.dispatch({ path: target.path, method: 'POST', headers, body, idempotent: false }, exchange)
  }

  armed(): void {
    this.#filter?.arm()
  }

  unsent(): boolean {
    return this.#socket === null || this.#socket.writableLength > 0
  }

  free(reusable: boolean): void {
    // undici is still in the middle of its parser, and closes the socket itself where the response asks for it.
    queueMicrotask(() => {
      if (this.#gone) return
      this.#exchange = null
      if (reusable && this.usable) this.#owner.freed(this)
      else this.cut()
    })
  }

  cut(): void {
    if (this.#gone) return
    this.#gone = true
    this.#stopDial?.()
    queueMicrotask(() => {
      this.#client.destroy(new Failure('local', 'connection given up'), ignore)
      this.#socket?.destroy()
      this.#owner.closed(this)
    })
  }

  #connect(done: ConnectDone): void {
    // A kept socket died before the request was written: undici asks for another one, which is as good as the first.
    const connected = (error: Failure | null, socket: Socket | null, address: string | null) => {
      this.#stopDial = null
      this.#address = address
      this.#tested = undefined
      if (error !== null) return done(error, null)
      this.#attach(socket as Socket)
      done(null, socket)
    }
    this.#stopDial = dial(this.#target, this.#options, connected, this.#identity)
  }

  #attach(socket: Socket): void {
    this.#socket = socket
    this.#filter = new InterimFilter(socket)
    this.#openedMs = this.#options.clock.mono()
    socket.on('error', ignore)
    socket.once('close', () => {
      if (this.#socket === socket && this.#exchange === null) this.cut()
    })
  }
}

type ConnectDone = (error: Error | null, socket: Socket | null) => void

function ignore(): void {}
