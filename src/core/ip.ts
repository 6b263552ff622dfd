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

function parseIpv6(text: string): IpBytes | null {
  if (text.length > 45) return null
  const gap = text.indexOf('::')
  const bytes = new Uint8Array(16)
  if (gap === -1) return writeGroups(text, bytes) === 16 ? bytes : null
  // Dotted decimal stands only at the very end.
  if (text.lastIndexOf('.', gap) !== -1) return null
  const head = writeGroups(text.slice(0, gap), bytes)
  const back = new Uint8Array(16)
  const tail = writeGroups(text.slice(gap + 2), back)
  if (head === -1 || tail === -1 || head + tail > 14) return null
  bytes.set(back.subarray(0, tail), 16 - tail)
  return bytes
}

/** Bytes written, −1 when the text is malformed. */
function writeGroups(text: string, into: Uint8Array): number {
  if (text === '') return 0
  const groups = text.split(':')
  let at = 0
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i] as string
    if (group.includes('.')) {
      if (i !== groups.length - 1 || at > 12 || !writeIpv4(group, into, at)) return -1
      return at + 4
    }
    if (!/^[0-9a-fA-F]{1,4}$/.test(group) || at > 14) return -1
    const value = Number.parseInt(group, 16)
    into[at++] = value >> 8
    into[at++] = value & 255
  }
  return at
}

const dot = 46
