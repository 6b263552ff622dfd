import { loggableUrl } from '../core/attempt.ts'
import { checkCustomHeaders } from '../core/custom-headers.ts'
import { endpointProblems } from '../core/endpoint-settings.ts'
import { type GuardPolicy, strictPolicy } from '../core/guard-policy.ts'
import { ok, type Problem } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import { contentProblems } from '../core/subscription-content.ts'
import { suggest } from '../core/suggest.ts'
import { checkUrl } from '../core/url-rules.ts'
import { schemas, validator } from './compile.ts'
import { explain } from './explain.ts'

export interface InputContext {
  readonly nowMs: number
  /** Taken when the input names no id. */
  readonly id?: string
  /** What stands in the table under this id; its creation time stays. */
  readonly existing?: Subscription
  /** What URLs may point at; the strict policy when it is not given. */
  readonly guard?: GuardPolicy
  /** `http.totalTimeout`: no attempt takes longer, whatever a subscription says. */
  readonly maxTimeoutMs?: number
}

export type InputResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/**
 * What a person or a file asks for → the record to write. Defaults are filled in (tenant `default`, types `['*']`,
 * ordering `key`, status `active`); every problem is reported at once; unknown keys are refused, as most are slips.
 */
export function validateSubscriptionInput(input: unknown, context: InputContext): InputResult<Subscription> {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return refused([problem('value', '', 'is not an object', 'write a mapping with at least url and secrets')])
  const given = dropUndefined(input as Record<string, unknown>)
  const data: Record<string, unknown> = {
    v: 1,
    ...(context.id === undefined ? {} : { id: context.id }),
    tenant: 'default',
    types: ['*'],
    ordering: 'key',
    status: 'active',
    ...given,
    createdAtMs: context.existing?.createdAtMs ?? given.createdAtMs ?? context.nowMs,
    updatedAtMs: context.nowMs,
  }
  const problems = unknownKeys(data, schemas.subscription as ObjectSchema, '')
  const guard = context.guard ?? strictPolicy
  const strict = [...urlProblems(data.url, guard), ...headerProblems(data.headers)]
  const validate = validator('subscription')
  if (!validate(data)) {
    const found = explain(validate.errors, data)
    problems.push(...found.filter((p) => !strict.some(({ field }) => field === p.field.split(/[.[]/)[0])))
  }
  problems.push(...strict)
  problems.push(...endpointProblems(data, guard), ...contentProblems(data))
  problems.push(...windowProblems(data.secrets), ...retryProblems(data.retry))
  problems.push(...timeoutProblems(data.timeoutMs, context))
  return problems.length === 0 ? ok(data as unknown as Subscription) : refused(problems)
}

interface ObjectSchema {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, ObjectSchema>>
  readonly items?: ObjectSchema
}

function unknownKeys(data: unknown, schema: ObjectSchema, path: string): Problem[] {
  if (Array.isArray(data) && schema.items !== undefined) {
    const { items } = schema
    return data.flatMap((item, i) => unknownKeys(item, items, `${path}[${i}]`))
  }
  const { properties } = schema
  if (typeof data !== 'object' || data === null || Array.isArray(data) || properties === undefined) return []
  return Object.entries(data).flatMap(([key, value]) => {
    const field = path === '' ? key : `${path}.${key}`
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (known !== undefined) return unknownKeys(value, known, field)
    const meant = suggest(key, Object.keys(properties))
    return [problem(field, '', 'is not a known key', meant === null ? 'remove it' : `did you mean ${meant}?`)]
  })
}

function urlProblems(url: unknown, guard: GuardPolicy): Problem[] {
  if (typeof url !== 'string') return []
  const checked = checkUrl(url, guard)
  if (checked.ok) return []
  const remedy = 'give a public https:// URL such as https://example.com/hook'
  return [problem('url', loggableUrl(url), checked.reason, remedy)]
}

function headerProblems(headers: unknown): Problem[] {
  if (headers === undefined) return []
  const checked = checkCustomHeaders(headers)
  return checked.ok ? [] : [problem('headers', '', checked.reason, 'correct or remove them')]
}

function windowProblems(secrets: unknown): Problem[] {
  if (!Array.isArray(secrets)) return []
  return secrets.flatMap((item: unknown, i) => {
    const { fromMs, untilMs } = (item ?? {}) as { fromMs?: unknown; untilMs?: unknown }
    if (typeof fromMs !== 'number' || typeof untilMs !== 'number' || fromMs < untilMs) return []
    return [
      problem(`secrets[${i}].untilMs`, String(untilMs), 'is not after fromMs', 'give a later time or leave it out'),
    ]
  })
}

function retryProblems(retry: unknown): Problem[] {
  const { baseMs, capMs } = (retry ?? {}) as { baseMs?: unknown; capMs?: unknown }
  if (typeof baseMs !== 'number' || typeof capMs !== 'number' || baseMs <= capMs) return []
  return [problem('retry.capMs', String(capMs), `is below retry.baseMs (${baseMs})`, 'raise capMs or lower baseMs')]
}

/** One that stands there already is let be: else nothing could be changed of it after the bound was lowered. */
function timeoutProblems(timeoutMs: unknown, { maxTimeoutMs, existing }: InputContext): Problem[] {
  if (typeof timeoutMs !== 'number' || maxTimeoutMs === undefined) return []
  if (timeoutMs <= maxTimeoutMs || timeoutMs === existing?.timeoutMs) return []
  const remedy = 'lower it; http.totalTimeout is the bound of all attempts'
  return [problem('timeoutMs', String(timeoutMs), `is above http.totalTimeout (${maxTimeoutMs})`, remedy)]
}

function dropUndefined(data: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined))
}

function problem(field: string, value: string, message: string, remedy: string): Problem {
  return { field, value, message, remedy }
}

function refused(problems: readonly Problem[]): { readonly ok: false; readonly problems: readonly Problem[] } {
  return { ok: false, problems }
}
