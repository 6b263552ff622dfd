import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'

const blockBytes = 64
/** Below it copying is cheaper than the objects of a streaming digest, whose finalizers the garbage collector pays for. */
const oneShotBytes = 65_536

/** Filled and read in one synchronous step; holds the inner key of whoever signed last, as the key objects do. */
const inner = Buffer.allocUnsafeSlow(blockBytes + oneShotBytes)

/**
 * HMAC-SHA256 (RFC 2104) of small contents as two one-shot digests: a delivery's signature costs a third of what
 * `createHmac` takes under load. Larger contents go through `createHmac`.
 */
export class HmacSha256 {
  readonly #key: KeyObject
  readonly #innerPad: Buffer
  /** The outer pad and room for the inner digest behind it. */
  readonly #outer: Buffer

  constructor(key: Buffer) {
    this.#key = createSecretKey(key)
    const block = Buffer.alloc(blockBytes)
    if (key.length > blockBytes) block.write(hash('sha256', key, 'hex'), 'hex')
    else key.copy(block)
    this.#innerPad = Buffer.alloc(blockBytes, 0x36)
    this.#outer = Buffer.alloc(blockBytes + 32, 0x5c)
    for (let i = 0; i < blockBytes; i++) {
      const byte = block[i] as number
      this.#innerPad[i] = (this.#innerPad[i] as number) ^ byte
      this.#outer[i] = (this.#outer[i] as number) ^ byte
    }
    block.fill(0)
  }

  /** Base64 of the digest over the parts one after another; text as UTF-8. */
  base64(parts: readonly (Buffer | string)[]): string {
    let most = 0
    for (const part of parts) most += typeof part === 'string' ? part.length * 3 : part.length
    if (most > oneShotBytes) {
      const hmac = createHmac('sha256', this.#key)
      for (const part of parts) hmac.update(part)
      return hmac.digest('base64')
    }
    this.#innerPad.copy(inner)
    let end = blockBytes
    for (const part of parts) end += typeof part === 'string' ? inner.write(part, end) : part.copy(inner, end)
    this.#outer.write(hash('sha256', inner.subarray(0, end), 'binary'), blockBytes, 'binary')
    return hash('sha256', this.#outer, 'base64')
  }
}
