import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Network } from '../../src/http/network.ts'

export interface Dial {
  readonly address: string
  readonly port: number
}

/** Records dials and answers every request itself; TLS is taken as done. Nothing leaves the process. */
export function stubNetwork(response: {
  status: number
  headers?: Record<string, string>
}): Network & { readonly dials: Dial[] } {
  const dials: Dial[] = []
  const lines = Object.entries(response.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`)
  const answer = `HTTP/1.1 ${response.status} X\r\n${lines.join('')}connection: close\r\ncontent-length: 0\r\n\r\n`
  return {
    dials,
    tcp(address, port) {
      dials.push({ address, port })
      const socket = new StubSocket(address, answer)
      process.nextTick(() => socket.emit('connect'))
      return socket as unknown as Socket
    },
    tls(socket) {
      process.nextTick(() => socket.emit('secureConnect'))
      return socket
    },
  }
}

class StubSocket extends Duplex {
  readonly remoteAddress: string
  readonly #answer: string
  #head = ''
  #answered = false

  constructor(remoteAddress: string, answer: string) {
    super()
    this.remoteAddress = remoteAddress
    this.#answer = answer
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.#head += chunk.toString('latin1')
    // The body of a guard case is empty, so a head is a request.
    if (!this.#answered && this.#head.includes('\r\n\r\n')) {
      this.#answered = true
      this.push(this.#answer)
    }
    done()
  }

  setNoDelay(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}
