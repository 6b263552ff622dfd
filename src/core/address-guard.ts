import type { GuardPolicy } from './guard-policy.ts'
import { type Cidr, type IpBytes, inCidr, parseCidr, parseIp } from './ip.ts'

/**
 * May this address be dialled? Null when it may, else the reason in a short clause (`loopback (127.0.0.0/8)`).
 * Everything that is not a public unicast address is refused, and so is text that is no address at all.
 * Sources: IANA IPv4 and IPv6 special-purpose address registries, RFC 6890, RFC 4291, cloud vendors' metadata pages.
 * `nameTrusted`: the operator listed the host name, so private addresses behind it are meant.
 */
export function addressRefusal(text: string, policy: GuardPolicy, nameTrusted = false): string | null {
  const ip = parseIp(text)
  if (ip === null) return `"${text.slice(0, 60)}" is not an IP address`
  const inner = embeddedIpv4(ip)
  const denied = find(ip, policy.deny) ?? (inner && find(inner, policy.deny))
  if (denied) return `on the operator's deny list (${denied.text})`
  const metadata = find(ip, metadataBlocks) ?? (inner && find(inner, metadataBlocks))
  if (metadata) return policy.allowMetadata ? null : `a metadata or link-local service (${metadata.text})`
  if (nameTrusted || find(ip, policy.allow)) return null
  if (ip.length === 4) return specialIpv4(ip)
  if (policy.allowNat64 && inCidr(ip, nat64)) return specialIpv4(ip.subarray(12))
  return specialIpv6(ip)
}

function specialIpv4(ip: IpBytes): string | null {
  for (const [cidr, what] of ipv4Special) if (inCidr(ip, cidr)) return `${what} (${cidr.text})`
  return null
}

function specialIpv6(ip: IpBytes): string | null {
  for (const [cidr, what] of ipv6Special) if (inCidr(ip, cidr)) return `${what} (${cidr.text})`
  return inCidr(ip, globalUnicast) ? null : 'not global unicast (outside 2000::/3)'
}

/** The IPv4 address that an IPv6 address stands for or tunnels to, as far as a translator on the way could know it. */
function embeddedIpv4(ip: IpBytes): IpBytes | null {
  if (ip.length === 4) return null
  for (const cidr of lastFourBytes) if (inCidr(ip, cidr)) return ip.subarray(12)
  if (inCidr(ip, sixToFour)) return ip.subarray(2, 6)
  if (inCidr(ip, teredo)) return ip.subarray(12).map((byte) => byte ^ 255)
  return null
}

function find(ip: IpBytes, blocks: readonly Cidr[]): Cidr | null {
  for (const block of blocks) if (inCidr(ip, block)) return block
  return null
}

function block(text: string): Cidr {
  const cidr = parseCidr(text)
  if (!cidr.ok) throw new TypeError(cidr.reason)
  return cidr.value
}

function table(rows: Record<string, string>): readonly (readonly [Cidr, string])[] {
  return Object.entries(rows).map(([text, what]) => [block(text), what] as const)
}

/** Link-local as a whole: every cloud keeps something there (169.254.169.254, .170.2, .170.23, .42.42, .0.23). */
const metadataBlocks: readonly Cidr[] = [
  '169.254.0.0/16',
  '168.63.129.16/32',
  '100.100.100.200/32',
  '192.0.0.192/32',
  'fd00:ec2::/32',
  'fd20:ce::/32',
  'fd00:42::/32',
  'fe80::a9fe:a9fe/128',
].map(block)

const nat64 = block('64:ff9b::/96')
const sixToFour = block('2002::/16')
const teredo = block('2001::/32')
const globalUnicast = block('2000::/3')
/** Compatible, mapped, translated (SIIT), NAT64, and its local-use block in the /96 form. */
const lastFourBytes: readonly Cidr[] = [
  '::/96',
  '::ffff:0:0/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
].map(block)

const ipv4Special = table({
  '0.0.0.0/8': '"this network", loopback on Linux',
  '10.0.0.0/8': 'private',
  '100.64.0.0/10': 'carrier-grade NAT',
  '127.0.0.0/8': 'loopback',
  '169.254.0.0/16': 'link-local',
  '172.16.0.0/12': 'private',
  '192.0.0.0/24': 'IETF protocol assignments',
  '192.0.2.0/24': 'documentation',
  '192.31.196.0/24': 'AS112',
  '192.52.193.0/24': 'AMT',
  '192.88.99.0/24': '6to4 relay',
  '192.168.0.0/16': 'private',
  '192.175.48.0/24': 'AS112',
  '198.18.0.0/15': 'benchmarking',
  '198.51.100.0/24': 'documentation',
  '203.0.113.0/24': 'documentation',
  '224.0.0.0/4': 'multicast',
  '240.0.0.0/4': 'reserved (class E, broadcast)',
})

const ipv6Special = table({
  '::/128': 'unspecified, loopback on Linux',
  '::1/128': 'loopback',
  '::ffff:0:0/96': 'IPv4-mapped',
  '::/96': 'IPv4-compatible',
  '::ffff:0:0:0/96': 'IPv4-translated',
  '64:ff9b::/96': 'NAT64',
  '64:ff9b:1::/48': 'local NAT64',
  '100::/64': 'discard-only',
  '2001::/32': 'Teredo',
  '2001::/23': 'IETF protocol assignments',
  '2001:db8::/32': 'documentation',
  '2002::/16': '6to4',
  '2620:4f:8000::/48': 'AS112',
  '3fff::/20': 'documentation',
  '5f00::/16': 'segment routing',
  'fc00::/7': 'unique local (private)',
  'fe80::/10': 'link-local',
  'fec0::/10': 'site-local',
  'ff00::/8': 'multicast',
})
