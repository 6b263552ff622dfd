import { fail, type Result } from '../core/result.ts'
import type { Secret } from '../core/secret.ts'
import { parseSecret } from '../core/signature.ts'
import type { Clock, Observer, Secrets, SigningKey } from '../ports.ts'
import type { References } from './references.ts'
import type { SealedSecrets } from './sealed-secrets.ts'

const repeatReportMs = 60_000

/** The `Secrets` port: signing keys behind `env:`, `file:` and `kafka:` references. */
export class SigningSecrets implements Secrets {
  readonly #references: References
  readonly #sealed: SealedSecrets
  readonly #clock: Clock
  readonly #observer: Observer
  /** Parsing builds key objects, so it is done once per text; entries go with their text. */
  readonly #parsed = new WeakMap<Secret, Result<readonly SigningKey[]>>()
  readonly #reported = new Map<string, { readonly reason: string; readonly atMono: number }>()

  constructor(parts: {
    readonly references: References
    readonly sealed: SealedSecrets
    readonly clock: Clock
    readonly observer: Observer
  }) {
    this.#references = parts.references
    this.#sealed = parts.sealed
    this.#clock = parts.clock
    this.#observer = parts.observer
  }

  keys(ref: string): readonly SigningKey[] | null {
    return this.#orReport(ref, this.resolve(ref))
  }

  text(ref: string): Secret | null {
    return this.#orReport(ref, this.resolveText(ref))
  }

  /** As `text`, with the reason, and silent. */
  resolveText(ref: string): Result<Secret> {
    return ref.startsWith('kafka:') ? this.#sealed.text(ref.slice(6)) : this.#references.text(ref)
  }

  /** As `keys`, with the reason, and silent: for `doctor` and for checks when a subscription is added. */
  resolve(ref: string): Result<readonly SigningKey[]> {
    const text = this.resolveText(ref)
    if (!text.ok) return text
    let keys = this.#parsed.get(text.value)
    if (keys === undefined) {
      const key = parseSecret(text.value)
      keys = key.ok ? { ok: true, value: [key.value] } : fail(`${ref} holds no signing secret: ${key.reason}`)
      this.#parsed.set(text.value, keys)
    }
    return keys
  }

  #orReport<T>(ref: string, found: Result<T>): T | null {
    if (found.ok) {
      if (this.#reported.delete(ref)) this.#observer.log('info', 'secret.available', { ref })
      return found.value
    }
    this.#report(ref, found.reason)
    return null
  }

  /** Once per reason, then once a minute: a reference is asked for with every delivery. */
  #report(ref: string, reason: string): void {
    this.#observer.count('secret.unavailable')
    const now = this.#clock.mono()
    const last = this.#reported.get(ref)
    if (last?.reason === reason && now - last.atMono < repeatReportMs) return
    this.#reported.set(ref, { reason, atMono: now })
    const shown = /^(env|file|kafka):/.test(ref) ? ref : '***'
    this.#observer.log('error', 'secret.unavailable', { ref: shown, reason })
  }
}
