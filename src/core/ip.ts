import { fail, ok, type Result } from './result.ts'

/** An IP address as its bytes, network order: 4 for IPv4, 16 for IPv6. */
export type IpBytes = Uint8Array

export interface Cidr {
  readonly bytes: IpBytes
  readonly prefix: number
  readonly text: string
}

/**
 * Strict: dotted decimal without leading zeros, or RFC 4291 text. No zone id, no port, no brackets: whatever else a
 * resolver may hand out is not an address, so that what can't be tested is never dialled.
 */
export function parseIp(text: string): IpBytes | null {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

export function parseCidr(text: string): Result<Cidr> {
  const slash = text.indexOf('/')
  const address = slash === -1 ? text : text.slice(0, slash)
  const bytes = parseIp(address)
  if (bytes === null) return fail(`"${text}" is not an IP address or CIDR block`)
  const bits = bytes.length * 8
  const tail = slash === -1 ? String(bits) : text.slice(slash + 1)
  const prefix = /^\d{1,3}$/.test(tail) ? Number(tail) : -1
  if (prefix < 0 || prefix > bits) return fail(`"${text}" has no prefix length between 0 and ${bits}`)
  return ok({ bytes, prefix, text })
}

/** Same family and the same first `prefix` bits. */
export function inCidr(ip: IpBytes, cidr: Cidr): boolean {
  const net = cidr.bytes
  if (ip.length !== net.length) return false
  const whole = cidr.prefix >> 3
  for (let i = 0; i < whole; i++) if (ip[i] !== net[i]) return false
  const rest = cidr.prefix & 7
  return rest === 0 || ((ip[whole] as number) ^ (net[whole] as number)) >> (8 - rest) === 0
}

export function sameIp(a: IpBytes, b: IpBytes): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}

function parseIpv4(text: string): IpBytes | null {
  if (text.length > 15) return null
  const bytes = new Uint8Array(4)
  return writeIpv4(text, bytes, 0) ? bytes : null
}

function writeIpv4(text: string, into: Uint8Array, at: number): boolean {
  let part = -1
  let count = 0
  for (let i = 0; i <= text.length; i++) {
    const c = i === text.length ? dot : text.charCodeAt(i)
    if (c === dot) {
      if (part < 0 || count === 4) return false
      into[at + count++] = part
      part = -1
    } else {
      if (c < 48 || c > 57 || part === 0) return false
      part = (part < 0 ? 0 : part * 10) + (c - 48)
      if (part > 255) return false
    }
  }
  return count === 4
}

/** One pass over the characters: this runs for every answer of every lookup. */
function parseIpv6(text: string): IpBytes | null {
  if (text.length > 45) return null
  const bytes = new Uint8Array(16)
  let at = 0
  let gap = -1
  let i = 0
  if (text.startsWith('::')) {
    gap = 0
    i = 2
  }
  while (i < text.length) {
    const start = i
    let value = 0
    for (; i < text.length; i++) {
      const digit = hexValue(text.charCodeAt(i))
      if (digit < 0) break
      value = value * 16 + digit
    }
    if (text.charCodeAt(i) === dot) {
      if (at > 12 || !writeIpv4(text.slice(start), bytes, at)) return null
      at += 4
      break
    }
    if (i === start || i - start > 4 || at > 14) return null
    bytes[at++] = value >> 8
    bytes[at++] = value & 255
    if (i === text.length) break
    if (text.charCodeAt(i++) !== colon || i === text.length) return null
    if (text.charCodeAt(i) === colon) {
      if (gap !== -1) return null
      gap = at
      i++
    }
  }
  if (gap === -1) return at === 16 ? bytes : null
  if (at > 14) return null
  const tail = at - gap
  bytes.copyWithin(16 - tail, gap, at)
  return bytes.fill(0, gap, 16 - tail)
}

function hexValue(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  const lower = code | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

const dot = 46
const colon = 58
