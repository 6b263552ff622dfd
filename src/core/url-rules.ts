import { addressRefusal } from './address-guard.ts'
import { type GuardPolicy, nameAllowed } from './guard-policy.ts'
import { parseIp } from './ip.ts'
import { fail, ok, type Result } from './result.ts'

/** A subscription URL that passed the static rules, taken apart for sending. */
export interface Target {
  /** Canonical, without the fragment: what is sent to and what is compared. */
  readonly href: string
  /** `https://example.com`, `http://[2606:4700::1]:8080`: what sockets are pooled by. */
  readonly origin: string
  readonly secure: boolean
  /** Lower case, no brackets, no trailing dot; an IP address in canonical text when `literal`. */
  readonly hostname: string
  readonly literal: boolean
  readonly port: number
  /** Path and query. */
  readonly path: string
}

const maxUrlChars = 2048

/**
 * Everything that can be known of a URL without a lookup. The text is judged before the URL parser may repair it, since
 * other parsers on the way repair it differently. Addresses behind a name are tested at every connection.
 */
export function checkUrl(text: string, policy: GuardPolicy): Result<Target> {
  if (typeof text !== 'string' || text === '') return fail('the URL is empty')
  if (text.length > maxUrlChars)
    return fail(`the URL has ${text.length} characters, at most ${maxUrlChars} are allowed`)
  const odd = oddCharacter.exec(text)
  if (odd !== null) return fail(`the URL contains ${describe(odd[0])} at position ${odd.index}; percent-encode it`)
  if (!text.isWellFormed()) return fail('the URL contains half a surrogate pair')
  const shape = /^https?:\/\/([^/?#]+)/i.exec(text)
  if (shape === null) return fail('the URL must begin with https:// (or http://) and a host')
  if ((shape[1] as string).includes('@')) return fail('the URL carries credentials; use headers or a secret reference')
  const url = URL.parse(text)
  if (url === null) return fail('the URL does not parse: its host or port is malformed')
  const secure = url.protocol === 'https:'
  if (!secure && !policy.allowHttp) return fail('plain http is not allowed here; use https')
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  if (badPorts.has(port)) return fail(`port ${port} belongs to another protocol or is reserved`)
  const host = checkHost(url.hostname, policy)
  if (!host.ok) return host
  const { name, literal } = host.value
  const authority = name.includes(':') ? `[${name}]` : name
  const origin = `${url.protocol}//${authority}${url.port === '' ? '' : `:${url.port}`}`
  const path = url.pathname + url.search
  return ok({ href: origin + path, origin, secure, hostname: name, literal, port, path })
}

function checkHost(hostname: string, policy: GuardPolicy): Result<{ name: string; literal: boolean }> {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  if (parseIp(bare) !== null) {
    const refusal = addressRefusal(bare, policy)
    return refusal === null ? ok({ name: bare, literal: true }) : fail(`address ${bare} is not allowed: ${refusal}`)
  }
  const name = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname
  if (name === '') return fail('the URL has no host')
  if (name.length > 253) return fail(`host name of ${name.length} characters, at most 253 are allowed`)
  const labels = name.split('.')
  for (const label of labels) {
    if (label === '') return fail(`host name "${clip(name)}" has an empty label`)
    if (label.length > 63) return fail(`host name label "${clip(label)}" is longer than 63 characters`)
  }
  if (nameAllowed(name, policy)) return ok({ name, literal: false })
  const special = specialUse.find((suffix) => name === suffix || name.endsWith(`.${suffix}`))
  if (special !== undefined) return fail(`host name "${clip(name)}" is internal (.${special})`)
  if (labels.length === 1) return fail(`host name "${clip(name)}" has a single label; use a full public name`)
  return ok({ name, literal: false })
}

/** Names that never mean a public host: RFC 6761, 6762, 8375, ICANN's reservation of .internal, and cluster habits. */
const specialUse = ['localhost', 'local', 'internal', 'localdomain', 'home.arpa', 'svc']

/** Controls, space, backslash, and what IDNA silently drops or shows nothing for (soft hyphen, zero width, bidi marks). */
const oddCharacter =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: single code points, joiners included on purpose
  /[\u0000-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufe00-\ufe0f\ufeff\ufff9-\ufffb\\]/

/** WHATWG Fetch, "bad port", plus 0. */
const badPorts: ReadonlySet<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

function describe(char: string): string {
  if (char === ' ') return 'a space'
  if (char === '\\') return 'a backslash'
  return `U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
