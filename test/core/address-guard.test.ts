import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addressRefusal } from '../../src/core/address-guard.ts'
import { type GuardPolicy, type GuardSettings, guardPolicy, strictPolicy } from '../../src/core/guard-policy.ts'
import { parseIp } from '../../src/core/ip.ts'

function policy(settings: GuardSettings): GuardPolicy {
  const made = guardPolicy(settings)
  if (!made.ok) throw new Error(made.reason)
  return made.value
}

test.each([
  ['127.0.0.1', /loopback/],
  ['10.0.0.1', /private/],
  ['100.64.0.1', /carrier/],
  ['169.254.169.254', /metadata/],
  ['168.63.129.16', /metadata/],
  ['0.0.0.0', /this network/],
  ['224.0.0.1', /multicast/],
  ['255.255.255.255', /class E/],
  ['192.175.48.1', /AS112/],
  ['::ffff:8.8.8.8', /mapped/],
  ['::8.8.8.8', /compatible/],
  ['::ffff:0:8.8.8.8', /translated/],
  ['64:ff9b::8.8.8.8', /NAT64/],
  ['64:ff9b:1::1', /local NAT64/],
  ['2002:808:808::1', /6to4/],
  ['2001::1', /Teredo/],
  ['2001:1ff::1', /IETF/],
  ['fd00::1', /unique local/],
  ['fe80::1', /link-local/],
  ['fec0::1', /site-local/],
  ['4000::1', /outside/],
  ['fe80::1%eth0', /not an IP/],
  ['', /not an IP/],
  ['example.com', /not an IP/],
])('%s is refused and the reason says why', (address, reason) => {
  expect(addressRefusal(address, strictPolicy)).toMatch(reason)
})

test.each([
  '1.1.1.1',
  '9.255.255.255',
  '168.63.129.15',
  '223.255.255.255',
  '2000::1',
  '2001:200::1',
  '2003::1',
  '2620:4f:8001::1',
  '3fff:1000::1',
])('%s is public', (address) => {
  expect(addressRefusal(address, strictPolicy)).toBeNull()
})

/** The IANA special-purpose registries, with multicast, class E and what was deprecated: blocks, first and last. */
const special = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '255.255.255.255/32'],
  ...['::/128', '::1/128', '::/96', '::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64'],
  ...['100:0:0:1::/64', '2001::/23', '2001::/32', '2001:2::/48', '2001:10::/28', '2001:20::/28', '2001:db8::/32'],
  ...['2002::/16', '2620:4f:8000::/48', '3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]

test('of every special-purpose block the first, the last and those between are refused, and its public neighbours are not', () => {
  const numberOf = (text: string) => [...(parseIp(text) as Uint8Array)].reduce((n, byte) => n * 256n + BigInt(byte), 0n)
  const textOf = (n: bigint, isV4: boolean) => {
    const hex = n.toString(16).padStart(isV4 ? 8 : 32, '0')
    const groups = hex.match(isV4 ? /../g : /..../g) as string[]
    return isV4 ? groups.map((group) => Number.parseInt(group, 16)).join('.') : groups.join(':')
  }
  const blocks = special.map((cidr) => {
    const [base = '', length = ''] = cidr.split('/')
    const isV4 = !base.includes(':')
    const size = 1n << BigInt((isV4 ? 32 : 128) - Number(length))
    return { cidr, isV4, first: numberOf(base), last: numberOf(base) + size - 1n, size }
  })
  const isSpecial = (n: bigint, isV4: boolean) =>
    blocks.some((block) => block.isV4 === isV4 && n >= block.first && n <= block.last)
  let [refused, passed] = [0, 0]
  for (const { cidr, isV4, first, last, size } of blocks) {
    for (const part of [0n, 1n, 3n, 5n, 7n, 8n]) {
      const n = part === 8n ? last : first + (size * part) / 8n
      expect([cidr, textOf(n, isV4), addressRefusal(textOf(n, isV4), strictPolicy)]).not.toContain(null)
      refused++
    }
    for (const n of [first - 1n, last + 1n]) {
      const isGlobal = isV4 || (n >= numberOf('2000::') && n <= numberOf('3fff:ffff::'))
      if (n < 0n || n > (isV4 ? 2n ** 32n : 2n ** 128n) - 1n || isSpecial(n, isV4) || !isGlobal) continue
      const text = textOf(n, isV4)
      expect([cidr, text, addressRefusal(text, strictPolicy)]).toEqual([cidr, text, null])
      passed++
    }
  }
  expect([refused > 200, passed > 30]).toEqual([true, true])
})

test('an allow-list opens its block and nothing beside it', () => {
  const open = policy({ allowPrivate: ['10.1.2.0/24', '::1'] })
  expect(addressRefusal('10.1.2.3', open)).toBeNull()
  expect(addressRefusal('::1', open)).toBeNull()
  expect(addressRefusal('10.1.3.3', open)).not.toBeNull()
  expect(addressRefusal('::ffff:10.1.2.3', open)).not.toBeNull()
})

test('metadata addresses stay shut for every allow-list, in every disguise, until their own switch', () => {
  const wide = policy({ allowPrivate: ['0.0.0.0/0', '::/0'] })
  const disguises = [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    '100.100.100.200',
    'fd00:ec2::254',
    '192.0.0.192',
    '168.63.129.16',
    '2001:0:1:1:1:1:5601:5601',
  ]
  for (const address of disguises) expect(addressRefusal(address, wide), address).toMatch(/metadata/)
  expect(addressRefusal('169.254.169.254', policy({ allowMetadata: true }))).toBeNull()
})

test('the deny list wins over public, allowed and embedded', () => {
  const shut = policy({ allowPrivate: ['10.0.0.0/8', '::/0'], deny: ['10.9.0.0/16', '52.0.0.0/24'] })
  for (const address of ['52.0.0.10', '10.9.1.1', '::ffff:10.9.1.1'])
    expect(addressRefusal(address, shut), address).toMatch(/deny/)
})

test('NAT64, once allowed, is judged by the IPv4 address it stands for', () => {
  const nat64 = policy({ allowNat64: true })
  expect(addressRefusal('64:ff9b::8.8.8.8', nat64)).toBeNull()
  expect(addressRefusal('64:ff9b::10.0.0.1', nat64)).toMatch(/private/)
  expect(addressRefusal('64:ff9b:1::8.8.8.8', nat64)).not.toBeNull()
})

test('no IPv6 address outside 2000::/3 is ever public', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
      fc.pre(((bytes[0] as number) & 0xe0) !== 0x20)
      const text = Array.from({ length: 8 }, (_, i) =>
        ((bytes[2 * i] as number) * 256 + (bytes[2 * i + 1] as number)).toString(16),
      ).join(':')
      expect(addressRefusal(text, strictPolicy)).not.toBeNull()
    }),
  )
})

test.each(['10.0.0.0/99', 'not a name', '300.1.1.1', ''])('a policy with allowPrivate %j is refused', (entry) => {
  expect(guardPolicy({ allowPrivate: [entry] }).ok).toBe(false)
})
