import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto'
import { fail, ok, type Result } from './result.ts'
import { Secret } from './secret.ts'

/**
 * The value of a `secrets` record (schemas/secret.json, version 1): a signing secret under AES-256-GCM. The master key
 * never is in Kafka. Id, version and key id are authenticated with it, so records can't be swapped or relabelled.
 */
export interface SealedSecret {
  readonly v: 1
  readonly id: string
  /** Rises by one with every new text of the secret. */
  readonly version: number
  /** Which master key sealed it. */
  readonly keyId: string
  /** 96 bits, base64, never used twice under one master key. */
  readonly nonce: string
  /** Ciphertext followed by the 128-bit tag, base64. */
  readonly sealed: string
  readonly createdAtMs: number
}

export interface MasterKey {
  readonly id: string
  readonly key: KeyObject
}

/** `current` seals; every one opens, by its id, so old records stay readable while a new key takes over. */
export interface MasterKeys {
  readonly current: MasterKey
  readonly byId: ReadonlyMap<string, MasterKey>
}

const keyIdPattern = /^[A-Za-z0-9_.-]{1,64}$/
const tagBytes = 16
const nonceBytes = 12

/**
 * Master keys as text: `keyid:BASE64` of 32 bytes, several separated by white space or commas, the sealing one first.
 * Reasons never quote the text.
 */
export function parseMasterKeys(text: string): Result<MasterKeys> {
  const byId = new Map<string, MasterKey>()
  let current: MasterKey | undefined
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '')
  for (const [index, entry] of entries.entries()) {
    const colon = entry.indexOf(':')
    const id = entry.slice(0, Math.max(colon, 0))
    const where = `master key ${index + 1} of ${entries.length}`
    if (colon < 0) return fail(`${where} has no key id; write keyid:BASE64 (e.g. k1:$(openssl rand -base64 32))`)
    if (!keyIdPattern.test(id)) return fail(`${where} has a malformed key id; use letters, digits, "_", "." and "-"`)
    const bytes = strictBase64(entry.slice(colon + 1))
    if (bytes?.length !== 32)
      return fail(`${where} (${id}) is not the base64 of 32 bytes; make one: openssl rand -base64 32`)
    if (byId.has(id)) return fail(`master key id ${id} stands there twice; give each key its own id`)
    const key = { id, key: createSecretKey(bytes) }
    byId.set(id, key)
    current ??= key
  }
  if (current === undefined) return fail('no master key: the text is empty; write keyid:BASE64 of 32 bytes')
  return ok({ current, byId })
}

export interface SecretPlain {
  readonly id: string
  readonly version: number
  readonly text: Secret
  readonly createdAtMs: number
}

/** `nonce`: 12 fresh random bytes for every call; reuse under one key would give the plaintext away. */
export function sealSecret(plain: SecretPlain, master: MasterKey, nonce: Buffer): SealedSecret {
  if (nonce.length !== nonceBytes) throw new RangeError(`nonce of ${nonce.length} bytes, must be ${nonceBytes}`)
  const cipher = createCipheriv('aes-256-gcm', master.key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(associatedData(plain.id, plain.version, master.id))
  const sealed = Buffer.concat([cipher.update(plain.text.reveal(), 'utf8'), cipher.final(), cipher.getAuthTag()])
  return {
    v: 1,
    id: plain.id,
    version: plain.version,
    keyId: master.id,
    nonce: nonce.toString('base64'),
    sealed: sealed.toString('base64'),
    createdAtMs: plain.createdAtMs,
  }
}

export function openSecret(record: SealedSecret, keys: MasterKeys): Result<Secret> {
  const label = `secret ${record.id} version ${record.version}`
  const master = keys.byId.get(record.keyId)
  if (master === undefined)
    return fail(
      `${label} is sealed under master key ${record.keyId}, which is not configured; add it to the master keys`,
    )
  const nonce = strictBase64(record.nonce)
  const sealed = strictBase64(record.sealed)
  if (nonce?.length !== nonceBytes || sealed === null || sealed.length < tagBytes)
    return fail(`${label} is damaged (truncated or not base64); write it again`)
  const end = sealed.length - tagBytes
  try {
    const decipher = createDecipheriv('aes-256-gcm', master.key, nonce, { authTagLength: tagBytes })
    decipher.setAAD(associatedData(record.id, record.version, record.keyId))
    decipher.setAuthTag(sealed.subarray(end))
    const text = Buffer.concat([decipher.update(sealed.subarray(0, end)), decipher.final()])
    return ok(new Secret(text.toString('utf8')))
  } catch {
    return fail(
      `${label} does not open: wrong master key behind id ${record.keyId}, or a changed record; write it again`,
    )
  }
}

/** Length-prefixed, so that no two (id, version, key id) share one encoding. */
function associatedData(id: string, version: number, keyId: string): Buffer {
  const parts = ['hooktide-secret-1', id, String(version), keyId].map((part) => Buffer.from(part))
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(part.length)
      return [length, part]
    }),
  )
}

/** Node skips what is not base64; here it is refused. */
function strictBase64(text: string): Buffer | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null
  return Buffer.from(text, 'base64')
}
