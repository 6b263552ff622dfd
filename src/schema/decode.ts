import type { Attempt } from '../core/attempt.ts'
import type { Control } from '../core/control.ts'
import type { LaneState } from '../core/lane-state.ts'
import type { HeaderMap, InRecord } from '../core/record.ts'
import type { Rejected } from '../core/rejected.ts'
import { rejectedHeader } from '../core/rejected.ts'
import { fail, ok, problemText, type Result } from '../core/result.ts'
import type { SealedSecret } from '../core/sealed-secret.ts'
import type { Subscription } from '../core/subscription.ts'
import { contentProblems } from '../core/subscription-content.ts'
import { type SchemaName, validator } from './compile.ts'
import { explain } from './explain.ts'

/**
 * Decoders of the records we write. They never throw: a value, or a reason that names field, value and remedy. Code
 * `unknown-version`: a newer Hooktide wrote it; keep the record where it is and report it. Code `tombstone`: no value.
 * Properties the schema does not know are left in place.
 */
type Failure = Extract<Result<never>, { ok: false }>

type Keyed = Pick<InRecord, 'value'> & { readonly key?: Buffer | null }

export function decodeSubscription(record: Keyed): Result<Subscription> {
  const decoded = keyed(record, decodeJson<Subscription>('subscription', 'subscription', record.value), (s) => s.id)
  if (!decoded.ok) return decoded
  const [first] = contentProblems(decoded.value as unknown as Record<string, unknown>)
  return first === undefined ? decoded : fail(`subscription: ${problemText(first)}`)
}

export function decodeSecret(record: Keyed): Result<SealedSecret> {
  return keyed(record, decodeJson<SealedSecret>('secret', 'secret', record.value), (s) => s.id)
}

export function decodeControl(record: Keyed): Result<Control> {
  return decodeJson<Control>('control', 'control record', record.value)
}

export function decodeLaneState(record: Keyed): Result<LaneState> {
  return decodeJson<LaneState>('laneState', 'lane-state record', record.value)
}

export function decodeAttempt(record: Keyed): Result<Attempt> {
  return decodeJson<Attempt>('attempt', 'attempt record', record.value)
}

export function decodeRejected(record: Pick<InRecord, 'headers'>): Result<Rejected> {
  const text = headerTexts(record.headers)
  const version = text[rejectedHeader.version]
  if (version === undefined) return fail(`not a rejected record: header ${rejectedHeader.version} is missing`)
  if (version !== '1') return unknownVersion('rejected record', version)
  const bad = check('rejected', 'rejected record', text)
  if (bad !== null) return bad
  const cut = text[rejectedHeader.truncated]
  return ok({
    code: text[rejectedHeader.code] as string,
    reason: text[rejectedHeader.reason] as string,
    topic: text[rejectedHeader.topic] as string,
    partition: Number(text[rejectedHeader.partition]),
    offset: Number(text[rejectedHeader.offset]),
    timestampMs: Number(text[rejectedHeader.timestamp]),
    truncatedFrom: cut === undefined ? null : Number(cut),
  })
}

/** Headers as text by name, for the two schemas that describe headers. */
export function headerTexts(headers: HeaderMap): Record<string, string> {
  const texts = Object.create(null) as Record<string, string>
  for (const name in headers) texts[name] = (headers[name] as Buffer).toString()
  return texts
}

function decodeJson<T>(name: SchemaName, label: string, bytes: Buffer | null): Result<T> {
  if (bytes === null) return fail(`${label}: no value (a tombstone)`, 'tombstone')
  let data: unknown
  try {
    data = JSON.parse(utf8.decode(bytes))
  } catch {
    return fail(`${label}: value of ${bytes.length} bytes is not JSON in UTF-8; write it with hooktide`)
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    return fail(`${label}: value is not a JSON object; write it with hooktide`)
  const version = (data as { v?: unknown }).v
  if (typeof version === 'number' && version !== 1) return unknownVersion(label, String(version))
  return check(name, label, data) ?? ok(data as T)
}

function check(name: SchemaName, label: string, data: unknown): Failure | null {
  const validate = validator(name)
  if (validate(data)) return null
  const problems = explain(validate.errors, data)
  const more = problems.length > 3 ? ` (and ${problems.length - 3} more)` : ''
  return fail(`${label}: ${problems.slice(0, 3).map(problemText).join('. ')}${more}`)
}

function unknownVersion(label: string, version: string): Failure {
  return fail(`${label}: v (${version.slice(0, 20)}) is unknown here; upgrade Hooktide to read it`, 'unknown-version')
}

function keyed<T>(record: Keyed, result: Result<T>, id: (value: T) => string): Result<T> {
  if (!result.ok || record.key == null) return result
  const key = record.key.toString()
  if (key === id(result.value)) return result
  return fail(`id (${id(result.value)}) is not the record's key (${key.slice(0, 100)}); write it with hooktide`)
}

/** It keeps nothing from one call to the next; making one costs more than most records take. */
const utf8 = new TextDecoder('utf-8', { fatal: true })
