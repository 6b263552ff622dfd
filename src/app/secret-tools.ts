import type { SecretTools } from '../operations/tools.ts'
import type { Clock, Observer } from '../ports.ts'
import { decodeSecret } from '../schema/decode.ts'
import { newSigningSecret, seal } from '../secrets/make-secret.ts'
import { masterKeysBehind, References } from '../secrets/references.ts'
import { SealedSecrets } from '../secrets/sealed-secrets.ts'
import { SigningSecrets } from '../secrets/signing-secrets.ts'

const silent: Observer = { log: () => undefined, count: () => undefined, time: () => undefined }

/** What commands may do with secrets. */
export function createSecretTools(env: Readonly<Record<string, string | undefined>>, clock: Clock): SecretTools {
  return {
    masterKeys(config) {
      const references = new References({ env, directory: config.secrets.directory, clock })
      return masterKeysBehind(config.secrets.masterKeyRef, references)()
    },
    newSigningSecret,
    seal,
    resolver(config, records) {
      const references = new References({ env, directory: config.secrets.directory, clock })
      const sealed = new SealedSecrets({
        decode: decodeSecret,
        masterKeys: masterKeysBehind(config.secrets.masterKeyRef, references),
      })
      for (const record of records) sealed.apply(record)
      const secrets = new SigningSecrets({ references, sealed, clock, observer: silent })
      return (ref, as = 'key') => (as === 'text' ? secrets.resolveText(ref) : secrets.resolve(ref))
    },
  }
}
