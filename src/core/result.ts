/** What a decoder returns: a value, or the reason there is none. Decoders never throw. */
export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string }

export function ok<T>(value: T): Result<T> {
  return { ok: true, value }
}

export function fail(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason }
}
