import { randomBytes } from 'node:crypto'
import { type MasterKey, type SealedSecret, type SecretPlain, sealSecret } from '../core/sealed-secret.ts'
import { Secret } from '../core/secret.ts'

/** A fresh HMAC signing secret: `whsec_` and 32 random bytes. */
export function newSigningSecret(): Secret {
  return new Secret(`whsec_${randomBytes(32).toString('base64')}`)
}

/** Seals under a fresh random nonce. At 96 bits, keep one master key below 2^32 sealings (NIST SP 800-38D, 8.3). */
export function seal(plain: SecretPlain, master: MasterKey): SealedSecret {
  return sealSecret(plain, master, randomBytes(12))
}
