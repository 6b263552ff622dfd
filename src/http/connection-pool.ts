import { Connection, type ConnectionOptions, type ConnectionOwner } from './connection.ts'
import type { Exchange } from './exchange.ts'

export interface PoolOptions extends ConnectionOptions {
  readonly maxSocketsPerOrigin: number
  /** Idle sockets over all origins; beyond it the longest idle one is closed. */
  readonly maxIdleSockets: number
}

interface Origin {
  readonly idle: Connection[]
  readonly waiting: Exchange[]
  open: number
}

/** Lends connections, newest idle first, and forgets an origin with its last one. Each client certificate has an origin of its own. */
export class ConnectionPool implements ConnectionOwner {
  readonly #options: PoolOptions
  readonly #origins = new Map<string, Origin>()
  /** Over all origins, longest idle first. */
  readonly #idle = new Set<Connection>()
  readonly #all = new Set<Connection>()

  constructor(options: PoolOptions) {
    this.#options = options
  }

  get stats(): { readonly origins: number; readonly open: number; readonly idle: number } {
    return { origins: this.#origins.size, open: this.#all.size, idle: this.#idle.size }
  }

  /** Puts the exchange on a connection at once, or in line when the origin has all the sockets it may have. */
  start(exchange: Exchange): void {
    const key = exchange.route
    let origin = this.#origins.get(key)
    if (origin === undefined) {
      origin = { idle: [], waiting: [], open: 0 }
      this.#origins.set(key, origin)
    }
    for (let connection = origin.idle.pop(); connection !== undefined; connection = origin.idle.pop()) {
      this.#idle.delete(connection)
      if (connection.usable) {
        connection.run(exchange)
        return
      }
      connection.cut()
    }
    if (origin.open >= this.#options.maxSocketsPerOrigin) origin.waiting.push(exchange)
    else this.#open(origin, exchange)
  }

  freed(connection: Connection): void {
    const origin = this.#origins.get(connection.route)
    if (origin === undefined) return
    const next = takeWaiting(origin)
    if (next !== undefined) {
      connection.run(next)
      return
    }
    origin.idle.push(connection)
    this.#idle.add(connection)
    if (this.#idle.size <= this.#options.maxIdleSockets) return
    const [oldest] = this.#idle
    this.#forget(oldest as Connection)
    oldest?.cut()
  }

  closed(connection: Connection): void {
    this.#forget(connection)
    if (!this.#all.delete(connection)) return
    const origin = this.#origins.get(connection.route)
    if (origin === undefined) return
    origin.open--
    const next = takeWaiting(origin)
    if (next !== undefined) this.#open(origin, next)
    else if (origin.open === 0) this.#origins.delete(connection.route)
  }

  closeAll(): void {
    for (const connection of this.#all) connection.cut()
  }

  #open(origin: Origin, exchange: Exchange): void {
    const connection = new Connection(exchange, this.#options, this)
    origin.open++
    this.#all.add(connection)
    connection.run(exchange)
  }

  #forget(connection: Connection): void {
    if (!this.#idle.delete(connection)) return
    const idle = this.#origins.get(connection.route)?.idle
    const at = idle?.indexOf(connection) ?? -1
    if (at >= 0) idle?.splice(at, 1)
  }
}

/** Settled ones (deadline, shutdown) stay in the line until they are met. */
function takeWaiting(origin: Origin): Exchange | undefined {
  for (;;) {
    const next = origin.waiting.shift()
    if (next === undefined || !next.settled) return next
  }
}
