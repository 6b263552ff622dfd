/**
 * A set of texts in a fixed amount of memory (a Bloom filter): `has` is never wrong with no, and rarely with yes, 1 in 25 once
 * it holds ten million.
 */
export class MaybeKnown {
  readonly #bits: Uint32Array
  readonly #mask: number

  /** `log2Bits`: 27 are 16 MB. */
  constructor(log2Bits = 27) {
    this.#bits = new Uint32Array(2 ** (log2Bits - 5))
    this.#mask = 2 ** log2Bits - 1
  }

  add(text: string): void {
    const [a, b] = hashes(text)
    for (let i = 0; i < probes; i++) {
      const bit = (a + Math.imul(i, b)) & this.#mask
      this.#bits[bit >>> 5] = (this.#bits[bit >>> 5] as number) | (1 << (bit & 31))
    }
  }

  has(text: string): boolean {
    const [a, b] = hashes(text)
    for (let i = 0; i < probes; i++) {
      const bit = (a + Math.imul(i, b)) & this.#mask
      if (((this.#bits[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false
    }
    return true
  }
}

const probes = 3

/** FNV-1a, and murmur's last mixing of it. */
function hashes(text: string): readonly [number, number] {
  let a = 0x811c9dc5
  let b = 0x9747b28c
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    a = Math.imul(a ^ c, 0x01000193)
    b = Math.imul(b ^ c, 0x5bd1e995)
  }
  return [mixed(a), mixed(b) | 1]
}

function mixed(h: number): number {
  let x = h ^ (h >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  return x ^ (x >>> 16)
}
