import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { createGzip } from 'node:zlib'
import type { Step } from './response-case.ts'

export interface Played {
  readonly port: number
  /** Connections that reached the application (after TLS). */
  connections: number
  /** Complete request heads seen. */
  requests: number
  bytes: number
  /** Steps this player does not know: the case can't be judged. */
  readonly unknown: string[]
  /** Resolves when a first request head is in. */
  readonly firstRequest: Promise<void>
  open(): number
  close(): Promise<void>
}

/** A raw TCP (or TLS) server on 127.0.0.1 that plays one script per connection and then holds it open. */
export async function playScript(script: readonly Step[], tls: TlsOptions | null): Promise<Played> {
  /** Not yet ended by the peer. */
  const sockets = new Set<Socket>()
  const all = new Set<Socket>()
  let seen = () => {}
  const firstRequest = new Promise<void>((resolve) => {
    seen = resolve
  })
  const serve = (socket: Socket) => {
    played.connections++
    const reader = new Reader(
      socket,
      () => {
        played.requests++
        seen()
      },
      (bytes) => {
        played.bytes += bytes
      },
    )
    void play(script, socket, reader, played.unknown)
  }
  const server: Server = tls === null ? createServer({ allowHalfOpen: true }, serve) : createTlsServer(tls, serve)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    all.add(socket)
    socket.on('error', () => {})
    socket.once('end', () => sockets.delete(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      all.delete(socket)
    })
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const played: Played = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    connections: 0,
    requests: 0,
    bytes: 0,
    unknown: [],
    firstRequest,
    open: () => {
      // A paused socket does not notice that its peer is gone.
      for (const socket of sockets) socket.resume()
      return sockets.size
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of all) socket.destroy()
        server.close(() => resolve())
      }),
  }
  return played
}

async function play(script: readonly Step[], socket: Socket, reader: Reader, unknown: string[]): Promise<void> {
  socket.on('error', () => {})
  const closed = new AbortController()
  socket.once('close', () => closed.abort())
  for (const step of script) {
    if (socket.destroyed) return
    try {
      await playStep(step, socket, reader, closed.signal, unknown)
    } catch {
      return
    }
  }
}

async function playStep(
  step: Step,
  socket: Socket,
  reader: Reader,
  closed: AbortSignal,
  unknown: string[],
): Promise<void> {
  if (step.read !== undefined) return reader.read(step.read)
  if (step.write !== undefined) return write(socket, encode(step.write))
  if (step.writeBase64 !== undefined) return write(socket, Buffer.from(step.writeBase64, 'base64'))
  if (step.writeGen !== undefined) {
    const { head, fill, lines, count, tail } = step.writeGen
    const middle =
      lines === undefined
        ? (fill ?? '').repeat(count)
        : Array.from({ length: count }, (_, i) => lines.replaceAll('{i}', String(i))).join('\r\n')
    return write(socket, encode(head + middle + tail))
  }
  if (step.sleepMs !== undefined) return void (await sleep(step.sleepMs, undefined, { signal: closed }))
  if (step.repeat !== undefined) {
    const { write: text, writeBase64, chunkedFill, everyMs, times } = step.repeat
    const chunk =
      chunkedFill !== undefined
        ? Buffer.from(
            `${chunkedFill.bytes.toString(16)}\r\n${chunkedFill.byte.repeat(chunkedFill.bytes)}\r\n`,
            'latin1',
          )
        : writeBase64 !== undefined
          ? Buffer.from(writeBase64, 'base64')
          : encode(text ?? '')
    for (let i = 0; times < 0 || i < times; i++) {
      await write(socket, chunk)
      await sleep(everyMs, undefined, { signal: closed })
    }
    return
  }
  if (step.pump !== undefined) {
    const chunk = Buffer.alloc(65_536, step.pump.byte ?? 'x', 'latin1')
    for (let left = step.pump.bytes; left > 0; left -= chunk.length)
      await write(socket, chunk.subarray(0, Math.min(left, chunk.length)))
    return
  }
  if (step.gzipZeros !== undefined) {
    const gzip = createGzip()
    const zeros = Buffer.alloc(65_536)
    gzip.on('error', () => {})
    socket.once('close', () => gzip.destroy())
    gzip.pipe(socket, { end: false })
    const ended = new Promise<void>((resolve) => gzip.once('end', resolve).once('close', resolve))
    for (let left = step.gzipZeros.bytes; left > 0 && !socket.destroyed; left -= zeros.length)
      if (!gzip.write(zeros)) await Promise.race([new Promise((resolve) => gzip.once('drain', resolve)), ended])
    gzip.end()
    return ended
  }
  if (step.pause !== undefined) return void reader.pause()
  if (step.hold !== undefined) return new Promise((resolve) => socket.once('close', () => resolve()))
  if (step.fin !== undefined) return void socket.end()
  if (step.rst !== undefined) return void socket.resetAndDestroy()
  unknown.push(JSON.stringify(step))
}

/** Reads whole requests off a socket: a `head` read leaves the body to the next one. */
class Reader {
  #buffer: Buffer = Buffer.alloc(0)
  #wake = () => {}
  #ended = false
  /** Body bytes that still belong to the head read last. */
  #body = 0
  readonly #socket: Socket
  readonly #onHead: () => void

  constructor(socket: Socket, onHead: () => void, onBytes: (bytes: number) => void) {
    this.#socket = socket
    this.#onHead = onHead
    socket.on('data', (chunk: Buffer) => {
      onBytes(chunk.length)
      // Only what a script can ask for is kept: a 5 MiB body would be copied at every chunk.
      const skip = Math.min(this.#body, this.#buffer.length === 0 ? chunk.length : 0)
      this.#body -= skip
      this.#buffer = this.#buffer.length === 0 ? chunk.subarray(skip) : Buffer.concat([this.#buffer, chunk])
      this.#wake()
    })
    const end = () => {
      this.#ended = true
      this.#wake()
    }
    socket.on('end', end).on('close', end)
  }

  pause(): void {
    this.#socket.pause()
  }

  async read(what: 'any' | 'head' | 'all'): Promise<void> {
    if (what === 'any') return this.#until(() => this.#buffer.length > 0)
    if (this.#body === 0 || what === 'head') await this.#head()
    if (what === 'all') await this.#until(() => this.#skipBody())
  }

  async #head(): Promise<void> {
    await this.#until(() => this.#skipBody() && this.#buffer.includes('\r\n\r\n'))
    const end = this.#buffer.indexOf('\r\n\r\n') + 4
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#buffer.toString('latin1', 0, end))
    this.#body = Number(length?.[1] ?? 0)
    this.#buffer = this.#buffer.subarray(end)
    this.#skipBody()
    this.#onHead()
  }

  #skipBody(): boolean {
    const skip = Math.min(this.#body, this.#buffer.length)
    this.#body -= skip
    this.#buffer = this.#buffer.subarray(skip)
    return this.#body === 0
  }

  async #until(fact: () => boolean): Promise<void> {
    while (!fact()) {
      if (this.#ended) throw new Error('the peer closed')
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

function write(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    if (socket.destroyed || !socket.writable) reject(new Error('the peer closed'))
    else socket.write(bytes, (error) => (error ? reject(error) : resolve()))
  })
}

function encode(text: string): Buffer {
  const filled = text.replace(/@(imf|rfc850|asctime)([+-]\d+)s/g, (_, form: string, seconds: string) =>
    httpDate(form, Number(seconds)),
  )
  return Buffer.from(filled, isLatin1(filled) ? 'latin1' : 'utf8')
}

function isLatin1(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 255) return false
  return true
}

function httpDate(form: string, seconds: number): string {
  const date = new Date(Date.now() + seconds * 1000)
  // "Wed, 21 Oct 2015 07:28:00 GMT"
  const imf = date.toUTCString()
  const [day, dd, mon, year, time] = imf.split(/,? /) as [string, string, string, string, string]
  if (form === 'imf') return imf
  if (form === 'asctime') return `${day} ${mon} ${String(Number(dd)).padStart(2, ' ')} ${time} ${year}`
  const long = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'][date.getUTCDay()]
  return `${long}, ${dd}-${mon}-${year.slice(2)} ${time} GMT`
}
