/**
 * What a decoder returns: a value, or the reason there is none. Decoders never throw. `code` is there where callers tell
 * reasons apart: `unknown-version` (written by a newer Hooktide: keep the record, report it, never drop it), `tombstone`.
 */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string; readonly code?: string }

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value }
}

export function fail(reason: string): { readonly ok: false; readonly reason: string }
export function fail<C extends string>(
  reason: string,
  code: C,
): { readonly ok: false; readonly reason: string; readonly code: C }
export function fail(reason: string, code?: string): { ok: false; reason: string; code?: string } {
  return code === undefined ? { ok: false, reason } : { ok: false, reason, code }
}

/** One thing wrong with something a person wrote: where, what stands there (already safe to print), what to do. */
export interface Problem {
  /** Path in the input: `secrets[0].ref`. */
  readonly field: string
  /** What stands there, shortened; `***` where it may be a secret; '' where nothing stands there. */
  readonly value: string
  readonly message: string
  readonly remedy: string
}

export function problemText(p: Problem): string {
  const value = p.value === '' ? '' : ` (${p.value})`
  const remedy = p.remedy === '' ? '' : `; ${p.remedy}`
  return `${p.field}${value}: ${p.message}${remedy}`
}
