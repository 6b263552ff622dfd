import type { InRecord } from '../core/record.ts'
import { fail, type Result } from '../core/result.ts'
import { type MasterKeys, openSecret, type SealedSecret } from '../core/sealed-secret.ts'
import type { Secret } from '../core/secret.ts'

interface Entry {
  readonly record: Result<SealedSecret>
  /** Opened on first use, and again when the master keys change. */
  opened: { readonly keys: MasterKeys; readonly result: Result<Secret> } | null
}

/**
 * The table behind `kafka:ID`: the latest record of each id of the compacted `secrets` topic. A record that can't be
 * read stays in the table with its reason and hides what stood there before: whoever wrote it replaced the old secret.
 */
export class SealedSecrets {
  readonly #entries = new Map<string, Entry>()
  readonly #decode: (record: Pick<InRecord, 'key' | 'value'>) => Result<SealedSecret>
  readonly #masterKeys: () => Result<MasterKeys>

  constructor(options: {
    readonly decode: (record: Pick<InRecord, 'key' | 'value'>) => Result<SealedSecret>
    /** Asked at every use, so that a new master key is taken up without a restart; must be cheap. */
    readonly masterKeys: () => Result<MasterKeys>
  }) {
    this.#decode = options.decode
    this.#masterKeys = options.masterKeys
  }

  /** Takes a record in log order. A failure is for the log; the table already knows it. */
  apply(record: Pick<InRecord, 'key' | 'value'>): Result<string> {
    if (record.key === null) return fail('secrets record without a key; the key is the secret id')
    const id = record.key.toString()
    if (record.value === null) {
      this.#entries.delete(id)
      return { ok: true, value: id }
    }
    const decoded = this.#decode(record)
    this.#entries.set(id, { record: decoded, opened: null })
    return decoded.ok ? { ok: true, value: id } : decoded
  }

  /** The record as it stands, still sealed: for version numbers and lists. */
  sealed(id: string): SealedSecret | null {
    const entry = this.#entries.get(id)
    return entry?.record.ok ? entry.record.value : null
  }

  ids(): IterableIterator<string> {
    return this.#entries.keys()
  }

  /** The same `Secret` object until the record or the master keys change. */
  text(id: string): Result<Secret> {
    const entry = this.#entries.get(id)
    if (entry === undefined) return fail(`secret ${id} is not in the secrets topic; add it, or correct the reference`)
    if (!entry.record.ok) return entry.record
    const keys = this.#masterKeys()
    if (!keys.ok) return keys
    if (entry.opened?.keys !== keys.value) {
      entry.opened = { keys: keys.value, result: openSecret(entry.record.value, keys.value) }
    }
    return entry.opened.result
  }
}
