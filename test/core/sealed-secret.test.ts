import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type MasterKeys, openSecret, parseMasterKeys, sealSecret } from '../../src/core/sealed-secret.ts'
import { Secret } from '../../src/core/secret.ts'

const master = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
const keys = (text: string): MasterKeys => {
  const parsed = parseMasterKeys(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.value
}
const ring = keys(master('k1'))
const plain = { id: 'acme', version: 3, text: new Secret('whsec_hunter2'), createdAtMs: 5 }
const sealed = sealSecret(plain, ring.current, randomBytes(12))

test('what was sealed opens to the same text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), fc.nat(), (text, id, version) => {
      const record = sealSecret({ ...plain, id, version, text: new Secret(text) }, ring.current, randomBytes(12))
      const opened = openSecret(record, ring)
      expect(opened.ok && opened.value.reveal()).toBe(text)
    }),
  )
})

test('the record shows nothing of the text, and a nonce of the wrong length is our own fault', () => {
  expect(JSON.stringify(sealed)).not.toContain('hunter2')
  expect(Buffer.from(sealed.sealed, 'base64').includes('hunter2')).toBe(false)
  expect(() => sealSecret(plain, ring.current, Buffer.alloc(16))).toThrow(RangeError)
})

describe('does not open', () => {
  const other = keys(master('k1'))
  test.each([
    ['under a wrong master key of the same id', sealed, other, 'wrong master key'],
    ['without its master key', sealed, keys(master('k2')), 'master key k1, which is not configured'],
    ['under another id (swapped records)', { ...sealed, id: 'globex' }, ring, 'does not open'],
    ['as another version (an old one passed off as new)', { ...sealed, version: 4 }, ring, 'does not open'],
    ['cut by 4 bytes', { ...sealed, sealed: sealed.sealed.slice(0, -4) }, ring, 'does not open'],
    ['cut below its tag', { ...sealed, sealed: sealed.sealed.slice(0, 8) }, ring, 'damaged'],
    ['empty', { ...sealed, sealed: '' }, ring, 'damaged'],
    ['not base64', { ...sealed, sealed: '****' }, ring, 'damaged'],
    ['with a short nonce', { ...sealed, nonce: sealed.nonce.slice(4) }, ring, 'damaged'],
    ['with another nonce', { ...sealed, nonce: randomBytes(12).toString('base64') }, ring, 'does not open'],
  ])('%s', (_, record, with_, reason) => {
    const opened = openSecret(record, with_)
    expect(opened).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
    expect(JSON.stringify(opened)).not.toContain('hunter2')
  })

  test('with any one bit flipped', () => {
    const bytes = Buffer.from(sealed.sealed, 'base64')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes)
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7))
      expect(openSecret({ ...sealed, sealed: flipped.toString('base64') }, ring).ok).toBe(false)
    }
  })
})

describe('master keys', () => {
  test('the first one seals, every one opens: rotation without a gap', () => {
    const [k1, k2] = [master('k1'), master('k2')]
    const before = sealSecret(plain, keys(k1).current, randomBytes(12))
    const both = keys(`${k2}\n${k1}\n`)
    expect(both.current.id).toBe('k2')
    expect(openSecret(before, both).ok).toBe(true)
    expect(openSecret(sealSecret(plain, both.current, randomBytes(12)), both).ok).toBe(true)
    expect(openSecret(before, keys(k2)).ok).toBe(false)
  })

  const good = randomBytes(32).toString('base64')
  test.each([
    ['', 'the text is empty'],
    [good, 'has no key id'],
    [`k 1:${good}`, 'has no key id'],
    [`k/1:${good}`, 'malformed key id'],
    [`k1:${randomBytes(16).toString('base64')}`, 'not the base64 of 32 bytes'],
    ['k1:c2VjcmV0IQ', 'not the base64 of 32 bytes'],
    [`k1:${good},k1:${good}`, 'stands there twice'],
  ])('refused, with the reason and not the key: case %#', (text, reason) => {
    const parsed = parseMasterKeys(text)
    expect(parsed).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
    expect(JSON.stringify(parsed)).not.toContain(good)
  })
})

test('a Secret prints as *** wherever it ends up', () => {
  const secret = new Secret('hunter2')
  const ways = [
    `${secret}`,
    String(secret),
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ a: [secret] }, { showHidden: true }),
    Object.values(secret).join(),
  ]
  for (const text of ways) expect(text).not.toContain('hunter2')
  expect([ways[0], ways[1], ways[3]]).toEqual(['***', '***', '***'])
  expect(secret.reveal()).toBe('hunter2')
})
