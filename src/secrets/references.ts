import { fail, ok, type Result } from '../core/result.ts'
import { type MasterKeys, parseMasterKeys } from '../core/sealed-secret.ts'
import { Secret } from '../core/secret.ts'
import type { Clock } from '../ports.ts'
import { SecretFiles } from './secret-files.ts'

export interface ReferenceOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** `secrets.directory`; null: no `file:` references. */
  readonly directory: string | null
  readonly clock: Clock
}

/** Resolves `env:NAME` and `file:PATH`. Reasons name the reference and the remedy, never a text. */
export class References {
  readonly #env: ReferenceOptions['env']
  readonly #files: SecretFiles | null
  readonly #fromEnv = new Map<string, Secret>()

  constructor(options: ReferenceOptions) {
    this.#env = options.env
    this.#files = options.directory === null ? null : new SecretFiles(options.directory, options.clock)
  }

  /** The same `Secret` object until the text changes. */
  text(ref: string): Result<Secret> {
    if (ref.startsWith('env:')) return this.#variable(ref.slice(4))
    if (ref.startsWith('file:')) {
      if (this.#files === null) return fail(`${ref} can not be read: secrets.directory is not set; set it`)
      return this.#files.read(ref.slice(5))
    }
    // Not echoed: what is no reference may be a secret.
    return fail('not a reference that can be read here; write env:NAME or file:PATH')
  }

  #variable(name: string): Result<Secret> {
    let secret = this.#fromEnv.get(name)
    if (secret === undefined) {
      const text = Object.hasOwn(this.#env, name) ? this.#env[name] : undefined
      if (text === undefined || text === '')
        return fail(`environment variable ${name} is not set or empty; set it or correct the reference`)
      secret = new Secret(text)
      this.#fromEnv.set(name, secret)
    }
    return ok(secret)
  }
}

/** The master keys behind `secrets.masterKeyRef`, parsed again only when the text changes. */
export function masterKeysBehind(ref: string | null, references: References): () => Result<MasterKeys> {
  let text: Secret | undefined
  let parsed: Result<MasterKeys> = fail('')
  return () => {
    if (ref === null) return fail('secrets.masterKeyRef is not set, so sealed secrets can not be opened; set it')
    const found = references.text(ref)
    if (!found.ok) return found
    if (found.value !== text) {
      text = found.value
      parsed = parseMasterKeys(text.reveal())
    }
    return parsed
  }
}
