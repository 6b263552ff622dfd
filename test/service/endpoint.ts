import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** One POST as the endpoint saw it. `endMs` null: it is still open. `status` null then, and where the sender went away. */
export interface Posted {
  readonly path: string
  readonly query: string
  readonly id: string
  readonly attempt: number
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
  readonly startMs: number
  endMs: number | null
  status: number | null
}

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

/** `nth`: which POST of this path, from 1. A promise keeps the POST open. */
export type Behaviour = (post: Posted, nth: number) => Answer | Promise<Answer>

/** Endpoints of a test and the journal of every POST that reached them, in the order of arrival. */
export class Endpoint {
  readonly posts: Posted[] = []
  readonly #behaviours = new Map<string, Behaviour>()
  readonly #counts = new Map<string, number>()
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    this.#take(request, response).catch(() => request.destroy())
  })
  #base = ''

  async start(): Promise<this> {
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.#base = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  /** The URL of a path that answers so; 200 at once unless said otherwise. */
  at(path: string, behaviour: Behaviour = () => ({ status: 200 })): string {
    this.#behaviours.set(path, behaviour)
    return this.#base + path
  }

  of(path: string): Posted[] {
    return this.posts.filter((post) => post.path === path)
  }

  /** Delivery ids that got a 2xx, as often as they did. */
  delivered(path: string): string[] {
    return this.of(path).flatMap(({ id, status }) => (status !== null && status < 300 ? [id] : []))
  }

  open(path: string): number {
    return this.of(path).filter(({ endMs }) => endMs === null).length
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startMs = Date.now()
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const [path = '', query = ''] = (request.url ?? '').split('?')
    const headers = request.headers as Record<string, string>
    const post: Posted = {
      path,
      query,
      id: headers['webhook-id'] ?? '',
      attempt: Number(headers['x-delivery-attempt']),
      body: Buffer.concat(chunks),
      headers,
      startMs,
      endMs: null,
      status: null,
    }
    this.posts.push(post)
    response.on('close', () => {
      post.endMs ??= Date.now()
    })
    const nth = (this.#counts.get(path) ?? 0) + 1
    this.#counts.set(path, nth)
    const answer = await (this.#behaviours.get(path)?.(post, nth) ?? { status: 404 })
    // The sender may be gone: then it never saw this answer.
    if (response.destroyed) return
    post.endMs = Date.now()
    post.status = answer.status
    response.writeHead(answer.status, answer.headers).end(`answered ${answer.status}\n`)
  }
}

/** A promise that the test settles. */
export function gate<T>(): { readonly opened: Promise<T>; open(value: T): void } {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { opened: promise, open: resolve }
}
