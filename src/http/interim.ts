import type { Socket } from 'node:net'

/**
 * undici takes `100 Continue` for a protocol error, but a client must pass over any interim response, asked for or not
 * (RFC 9110 §15.2). `102` it does pass over. So the status of a leading `100` is changed on its way to the parser, in
 * place and without a change of length. Costs one comparison per response that starts with another status.
 */
export class InterimFilter {
  /** Bytes of `HTTP/1.x 100` matched so far; −1: not looking. */
  #matched = -1
  /** Inside an interim block: how much of the CRLFCRLF that ends it has been seen; −1: not inside. */
  #ending = -1

  constructor(socket: Socket) {
    const read = socket.read
    socket.read = (size?: number) => {
      const chunk = read.call(socket, size)
      if (chunk !== null && (this.#matched >= 0 || this.#ending >= 0)) this.#scan(chunk)
      return chunk
    }
  }

  /** A request went out: the next byte begins its response. */
  arm(): void {
    this.#matched = 0
    this.#ending = -1
  }

  #scan(chunk: Buffer): void {
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] as number
      if (this.#ending >= 0) {
        this.#ending = byte === crlfcrlf[this.#ending] ? this.#ending + 1 : byte === 13 ? 1 : 0
        if (this.#ending === 4) this.arm()
      } else if (this.#matched === 0 && (byte === 13 || byte === 10)) {
        // Empty lines before a status line are passed over by the parser too.
      } else if (byte === pattern[this.#matched] || (this.#matched === 7 && byte === 48)) {
        if (++this.#matched === pattern.length) {
          chunk[i] = 50
          this.#matched = -1
          this.#ending = 0
        }
      } else if (this.#matched >= 10 && this.#matched <= 11 && byte >= 48 && byte <= 57) {
        // Another 1xx: leave it, but look behind it.
        this.#matched = -1
        this.#ending = 0
      } else {
        this.#matched = -1
        return
      }
    }
  }
}

const pattern = Buffer.from('HTTP/1.1 100')
const crlfcrlf = [13, 10, 13, 10]
