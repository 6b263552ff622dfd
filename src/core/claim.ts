import { createHash } from 'node:crypto'
import { fail, ok, type Result } from './result.ts'

/**
 * A pointer to a body that is too large for a record: header `hooktide-claim` of an event, `ht-claim` of its deliveries.
 * It names a place in the one store that is configured, never a host or a file: nobody can point it elsewhere.
 */
export interface Claim {
  readonly key: string
  readonly bytes: number
  /** Of the body, lower case hex. */
  readonly sha256: string
}

export const claimHeader = 'hooktide-claim'

export function encodeClaim({ key, bytes, sha256 }: Claim): string {
  return JSON.stringify({ key, bytes, sha256 })
}

/** Reason without a value of the pointer: it goes into logs. */
export function decodeClaim(text: string, maxBytes: number): Result<Claim> {
  let data: unknown
  try {
    data = text.length > 1_024 ? null : JSON.parse(text)
  } catch {
    data = null
  }
  const write = `write {"key", "bytes", "sha256"}, at most 1024 characters`
  if (typeof data !== 'object' || data === null) return fail(`header ${claimHeader} is no pointer; ${write}`)
  const names = { what: `header ${claimHeader}`, key: 'key', bytes: 'bytes', sha256: 'sha256' }
  return checkedClaim(data as Record<string, unknown>, maxBytes, names)
}

/** Where a pointer may lead, whoever wrote it and how. `names`: what its parts are called there, for the reason. */
export function checkedClaim(
  { key, bytes, sha256 }: { readonly key?: unknown; readonly bytes?: unknown; readonly sha256?: unknown },
  maxBytes: number,
  names: { readonly what: string; readonly key: string; readonly bytes: string; readonly sha256: string },
): Result<Claim> {
  const { what } = names
  if (maxBytes === 0) return fail(`${what}: pointers are not taken here`)
  if (typeof key !== 'string' || !isClaimKey(key))
    return fail(
      `${what}: ${names.key} must be 1 to 300 letters, digits, "-", "_", "=", "." with "/" between, no "..", no host`,
    )
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
    return fail(`${what}: ${names.sha256} must be 64 lower case hex digits`)
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes < 0)
    return fail(`${what}: ${names.bytes} must be the size of the body`)
  if (bytes > maxBytes)
    return fail(`a claimed body of ${bytes} bytes, at most ${maxBytes} (objects.maxBytes)`, 'too-large')
  return ok({ key, bytes, sha256 })
}

/** Segments that begin with a letter or digit: none is `.` or `..`, and none is empty. */
export function isClaimKey(key: string): boolean {
  return key.length <= 300 && /^[A-Za-z0-9][A-Za-z0-9._=-]*(\/[A-Za-z0-9][A-Za-z0-9._=-]*)*$/.test(key)
}

/** By day, so that what is old can be removed by its name; by digest, so that the same body is stored once a day. */
export function claimFor(body: Buffer, nowMs: number): Claim {
  const sha256 = createHash('sha256').update(body).digest('hex')
  return { key: `${new Date(nowMs).toISOString().slice(0, 10)}/${sha256}`, bytes: body.length, sha256 }
}

/** Is it the day that such keys begin with, before the day of a time? */
export function isDayBefore(name: string, timeMs: number): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(name) && name < new Date(timeMs).toISOString().slice(0, 10)
}

/** Null: these are the bytes that were claimed. */
export function claimProblem(claim: Claim, body: Buffer): string | null {
  if (body.length !== claim.bytes) return `the object has ${body.length} bytes, claimed were ${claim.bytes}`
  const found = createHash('sha256').update(body).digest('hex')
  return found === claim.sha256 ? null : 'the object has another digest than was claimed'
}
