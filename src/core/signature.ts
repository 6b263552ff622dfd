import {
  createPrivateKey,
  createPublicKey,
  sign as signBytes,
  timingSafeEqual,
  verify as verifyBytes,
} from 'node:crypto'
import { HmacSha256 } from './hmac.ts'
import { fail, ok, type Result } from './result.ts'
import type { Secret } from './secret.ts'

/** A key as the sender uses it (`SigningKey` of the ports). The key material is in private fields, which print nothing. */
export interface Key {
  readonly kind: 'v1' | 'v1a'
  /** Base64 of the signature over the parts one after another. */
  sign(content: readonly (Buffer | string)[]): string
}

/**
 * Reads a Standard Webhooks secret: `whsec_` + base64 of 24–64 bytes (HMAC-SHA256), or `whsk_` + base64 of an ed25519
 * seed and its public key (64 bytes). Strict: no white space, padded standard base64 only, since what Node reads
 * leniently another language reads differently. Reasons never quote the text.
 */
export function parseSecret(secret: Secret | string): Result<Key> {
  const text = typeof secret === 'string' ? secret : secret.reveal()
  if (text === '') return fail('the secret is empty')
  if (/\s/.test(text)) return fail('the secret contains white space; a file may end in one newline, nothing else')
  if (text.startsWith('whsec_')) return parseHmac(text.slice(6))
  if (text.startsWith('whsk_')) return parseEd25519(text.slice(5))
  if (text.startsWith('whpk_')) return fail('this is a public key (whpk_); signing needs the secret one (whsk_)')
  return fail('the secret must begin with whsec_ (HMAC) or whsk_ (ed25519)')
}

/** What editors and `echo` leave behind: one final newline of a mounted secret file is not part of the secret. */
export function trimFileNewline(text: string): string {
  return text.replace(/\r?\n$/, '')
}

function parseHmac(base64: string): Result<Key> {
  const bytes = strictBase64(base64)
  if (bytes === null) return fail('after whsec_ the secret must be padded standard base64')
  if (bytes.length < 24 || bytes.length > 64)
    return fail(`the secret has ${bytes.length} bytes; between 24 and 64 are needed (openssl rand -base64 32)`)
  return ok(hmacKey(bytes))
}

function parseEd25519(base64: string): Result<Key> {
  const bytes = strictBase64(base64)
  if (bytes === null) return fail('after whsk_ the secret must be padded standard base64')
  if (bytes.length !== 64) return fail(`the ed25519 secret has ${bytes.length} bytes; seed and public key make 64`)
  const key = createPrivateKey({
    key: Buffer.concat([pkcs8Prefix, bytes.subarray(0, 32)]),
    format: 'der',
    type: 'pkcs8',
  })
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  if (!spki.subarray(-32).equals(bytes.subarray(32)))
    return fail('the public half of the ed25519 secret does not match its seed')
  return ok({ kind: 'v1a', sign: (content) => signBytes(null, joined(content), key).toString('base64') })
}

function hmacKey(bytes: Buffer): Key {
  const hmac = new HmacSha256(bytes)
  return { kind: 'v1', sign: (content) => hmac.base64(content) }
}

/** Why a `webhook-id` may not be used, null when it may. A dot would move the border between id and timestamp. */
export function webhookIdProblem(id: string): string | null {
  if (id === '') return 'webhook-id is empty'
  if (id.length > 256) return `webhook-id has ${id.length} characters, at most 256 are allowed`
  if (!/^[\x21-\x7e]+$/.test(id)) return 'webhook-id must be printable ASCII without spaces'
  return id.includes('.') ? 'webhook-id may not contain a dot' : null
}

/** Value of `webhook-signature`: one entry per key, in their order (newest first). `timestampS` in seconds. */
export function signatureHeader(keys: readonly Key[], id: string, timestampS: number, body: Buffer): string {
  const content = [`${id}.${timestampS}.`, body]
  let header = ''
  for (const key of keys) header += `${header === '' ? '' : ' '}${key.kind},${key.sign(content)}`
  return header
}

/** The older form of GitHub and others (`x-hub-signature-256: sha256=<hex>`): the body alone, no id, no time, so it does not protect against replays. */
export function bodySignature(key: Key, body: Buffer, prefix = 'sha256=', format: 'hex' | 'base64' = 'hex'): string {
  const digest = key.sign([body])
  return prefix + (format === 'base64' ? digest : Buffer.from(digest, 'base64').toString('hex'))
}

/** An HMAC key that is the text itself, as older senders use it; no form is asked of it, only that it is there. */
export function rawHmacKey(secret: Secret): Result<Key> {
  const text = secret.reveal()
  return text === '' ? fail('the secret is empty') : ok(hmacKey(Buffer.from(text, 'utf8')))
}

/**
 * What a receiver does: does any entry of the header match? `secret` is `whsec_…`, `whsk_…` or `whpk_…`. Entries of
 * unknown versions are passed over. The age of the timestamp is the caller's to judge.
 */
export function verifySignature(secret: string, header: string, id: string, timestamp: string, body: Buffer): boolean {
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  const check = verifier(secret, content)
  if (check === null || webhookIdProblem(id) !== null || !/^[0-9]{1,15}$/.test(timestamp)) return false
  return header.split(' ').some((entry) => {
    const comma = entry.indexOf(',')
    const given = strictBase64(entry.slice(comma + 1))
    return comma > 0 && given !== null && entry.slice(0, comma) === check.kind && check.matches(given)
  })
}

function verifier(secret: string, content: Buffer): { kind: string; matches(given: Buffer): boolean } | null {
  if (secret.startsWith('whpk_')) {
    const bytes = strictBase64(secret.slice(5))
    if (bytes?.length !== 32) return null
    const key = createPublicKey({ key: Buffer.concat([spkiPrefix, bytes]), format: 'der', type: 'spki' })
    return { kind: 'v1a', matches: (given) => verifyBytes(null, content, key, given) }
  }
  const key = parseSecret(secret)
  if (!key.ok) return null
  const expected = Buffer.from(key.value.sign([content]), 'base64')
  return {
    kind: key.value.kind,
    matches: (given) => given.length === expected.length && timingSafeEqual(given, expected),
  }
}

/** Node skips what is not base64 and accepts the URL alphabet; here only the one canonical text of some bytes passes. */
function strictBase64(text: string): Buffer | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : null
}

function joined(content: readonly (Buffer | string)[]): Buffer {
  return Buffer.concat(content.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
}

/** ASN.1 around a raw ed25519 seed or public key (RFC 8410). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')
