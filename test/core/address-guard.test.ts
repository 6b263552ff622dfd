import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addressRefusal } from '../../src/core/address-guard.ts'
import { type GuardPolicy, type GuardSettings, guardPolicy, strictPolicy } from '../../src/core/guard-policy.ts'

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
