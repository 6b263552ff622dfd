import { createHmac, generateKeyPairSync } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { Secret } from '../../src/core/secret.ts'
import {
  bodySignature,
  parseSecret,
  signatureHeader,
  trimFileNewline,
  verifySignature,
  webhookIdProblem,
} from '../../src/core/signature.ts'

const hmacSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

function key(secret: string) {
  const parsed = parseSecret(new Secret(secret))
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.value
}

function ed25519(): { secret: string; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
  const point = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return {
    secret: `whsk_${Buffer.concat([seed, point]).toString('base64')}`,
    publicKey: `whpk_${point.toString('base64')}`,
  }
}

test('the standardwebhooks package accepts what is signed here, for any text', () => {
  const receiver = new Webhook(hmacSecret)
  const timestampS = Math.floor(Date.now() / 1000)
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const header = signatureHeader([key(hmacSecret)], 'msg_1', timestampS, Buffer.from(text))
      const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(timestampS), 'webhook-signature': header }
      expect(() => receiver.verify(text, headers, { jsonParse: false } as never)).not.toThrow()
    }),
  )
})

test('any bytes verify with their own keys and with no others, HMAC and ed25519, several at once', () => {
  const pair = ed25519()
  const other = ed25519()
  const keys = [key(pair.secret), key(hmacSecret)]
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const body = Buffer.from(bytes)
      const header = signatureHeader(keys, 'msg_1', 1_700_000_000, body)
      expect(header).toMatch(/^v1a,\S+ v1,\S+$/)
      for (const secret of [pair.publicKey, pair.secret, hmacSecret])
        expect(verifySignature(secret, header, 'msg_1', '1700000000', body)).toBe(true)
      expect(verifySignature(other.publicKey, header, 'msg_1', '1700000000', body)).toBe(false)
      expect(verifySignature(hmacSecret, header, 'msg_1', '1700000001', body)).toBe(false)
      expect(verifySignature(hmacSecret, header, 'msg_2', '1700000000', body)).toBe(false)
      expect(verifySignature(hmacSecret, header, 'msg_1', '1700000000', Buffer.concat([body, Buffer.of(0)]))).toBe(
        false,
      )
    }),
    { numRuns: 50 },
  )
})

test.each([
  ['', /empty/],
  ['whsec_', /0 bytes/],
  [`whsec_${Buffer.alloc(23, 1).toString('base64')}`, /23 bytes/],
  [`whsec_${Buffer.alloc(65, 1).toString('base64')}`, /65 bytes/],
  ['whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc', /padded/],
  ['whsec_-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7', /standard base64/],
  ['whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwd=', /standard base64/],
  [`${hmacSecret}\n`, /white space/],
  [` ${hmacSecret}`, /white space/],
  ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', /begin with/],
  ['WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', /begin with/],
  [ed25519().publicKey, /public key/],
  [`whsk_${Buffer.alloc(32, 1).toString('base64')}`, /32 bytes/],
  [`whsk_${Buffer.alloc(64, 1).toString('base64')}`, /does not match/],
])('secret %# is refused, and the reason does not quote it', (secret, reason) => {
  const parsed = parseSecret(secret)
  expect(parsed.ok).toBe(false)
  const text = parsed.ok ? '' : parsed.reason
  expect(text).toMatch(reason)
  if (secret.length > 8) expect(text).not.toContain(secret.trim())
})

test('the legacy form is the hex HMAC of the body alone', () => {
  const raw = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
  const body = Buffer.from([0, 255, 10])
  expect(bodySignature(key(hmacSecret), body)).toBe(`sha256=${createHmac('sha256', raw).update(body).digest('hex')}`)
})

test('secrets of 24 and of 64 bytes are accepted', () => {
  for (const bytes of [24, 32, 64])
    expect(parseSecret(`whsec_${Buffer.alloc(bytes, 7).toString('base64')}`).ok).toBe(true)
})

test('one newline at the end of a file is not part of the secret', () => {
  expect(trimFileNewline('abc\n')).toBe('abc')
  expect(trimFileNewline('abc\r\n')).toBe('abc')
  expect(parseSecret(trimFileNewline(`${hmacSecret}\n\n`)).ok).toBe(false)
})

test('a key prints nothing of its secret', () => {
  const bytes = Buffer.alloc(32, 7)
  const printed = [
    inspect(key(`whsec_${bytes.toString('base64')}`), { depth: 9, showHidden: true }),
    JSON.stringify(key(hmacSecret)),
    String(key(hmacSecret)),
  ].join()
  expect(printed).not.toContain(bytes.toString('base64'))
  expect(printed).not.toContain('MfKQ9r8')
  expect(printed).not.toContain(bytes.toString('hex'))
})

test.each(['', 'a.b', 'msg_é', 'a b', 'a\n', 'x'.repeat(257)])('webhook-id %j is refused', (id) => {
  expect(webhookIdProblem(id)).not.toBeNull()
})

test.each([
  'v2,x5lVgj0b/JJJaUYaa1+6I5J/EECcryrPlFN4VrkmI94=',
  'v1 x5lVgj0b/JJJaUYaa1+6I5J/EECcryrPlFN4VrkmI94=',
  'v1,x5lVgj0b/JJJaUYaa1+6I5J/EECcryrPlFN4VrkmI94',
  'v1a,x5lVgj0b/JJJaUYaa1+6I5J/EECcryrPlFN4VrkmI94=',
  'x5lVgj0b/JJJaUYaa1+6I5J/EECcryrPlFN4VrkmI94=',
  '',
])('the right bytes in the wrong form do not verify: %j', (header) => {
  expect(verifySignature(hmacSecret, header, 'msg_1', '1700000000', Buffer.from('{}'))).toBe(false)
})
