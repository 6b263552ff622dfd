import { isIP } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { inCidr, parseCidr, parseIp } from '../../src/core/ip.ts'

test.each([
  ['1.2.3.4', '01020304'],
  ['255.255.255.255', 'ffffffff'],
  ['0.0.0.0', '00000000'],
  ['::', '00000000000000000000000000000000'],
  ['::1', '00000000000000000000000000000001'],
  ['2001:DB8::1:0', '20010db8000000000000000000010000'],
  ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
  ['::ffff:1.2.3.4', '00000000000000000000ffff01020304'],
  ['1:2:3:4:5:6:1.2.3.4', '00010002000300040005000601020304'],
])('%s is read as %s', (text, hex) => {
  expect(Buffer.from(parseIp(text) as Uint8Array).toString('hex')).toBe(hex)
})

test.each([
  '',
  ' ',
  '1.2.3',
  '1.2.3.4.5',
  '01.2.3.4',
  '1.2.3.256',
  '1.2.3.',
  '.1.2.3',
  '1..2.3',
  '0x7f.0.0.1',
  '2130706433',
  '1.2.3.4 ',
  ':',
  ':::',
  '1::2::3',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4:5:6:7:8::',
  '::12345',
  '::g',
  'fe80::1%eth0',
  '[::1]',
  '1.2.3.4::',
  '::1.2.3',
  '::1.2.3.4:5',
  '1:2:3:4:5:6:7:1.2.3.4',
  ':1::',
  '١.2.3.4',
])('%j is no address', (text) => {
  expect(parseIp(text)).toBeNull()
})

test('agrees with node on what an address is, for any text of address characters', () => {
  const chars = fc.string({ unit: fc.constantFrom(...'0123456789abcf:.%/ '), maxLength: 40 })
  fc.assert(
    fc.property(fc.oneof(chars, fc.ipV4(), fc.ipV6()), (text) => {
      // A zone id is an address to node; here it is not, since it is never to be dialled.
      expect(parseIp(text) !== null).toBe(isIP(text) !== 0 && !text.includes('%'))
    }),
    { numRuns: 3000 },
  )
})

test.each([
  ['10.0.0.0/8', '10.255.255.255', true],
  ['10.0.0.0/8', '11.0.0.0', false],
  ['172.16.0.0/12', '172.31.255.255', true],
  ['172.16.0.0/12', '172.32.0.0', false],
  ['1.2.3.4', '1.2.3.4', true],
  ['1.2.3.4/32', '1.2.3.5', false],
  ['0.0.0.0/0', '255.255.255.255', true],
  ['0.0.0.0/0', '::', false],
  ['3fff::/20', '3fff:fff::1', true],
  ['3fff::/20', '3fff:1000::1', false],
  ['::/0', '::1', true],
])('%s holds %s: %s', (block, address, inside) => {
  const cidr = parseCidr(block)
  expect(cidr.ok && inCidr(parseIp(address) as Uint8Array, cidr.value)).toBe(inside)
})

test.each(['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8x', '::/129', 'localhost', '10.0.0/8', '/8'])(
  '%j is no block',
  (text) => {
    expect(parseCidr(text).ok).toBe(false)
  },
)
