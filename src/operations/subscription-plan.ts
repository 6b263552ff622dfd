import { isDeepStrictEqual } from 'node:util'
import type { GuardPolicy } from '../core/guard-policy.ts'
import { type Problem, problemText } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import { validateSubscriptionInput } from '../schema/subscription-input.ts'
import type { SubscriptionTable } from './subscription-store.ts'

export interface FieldChange {
  readonly field: string
  /** Undefined: not set. */
  readonly before: unknown
  readonly after: unknown
}

export type PlannedAction = 'create' | 'update' | 'unchanged' | 'remove'

export interface PlannedSubscription {
  readonly id: string
  readonly action: PlannedAction
  readonly changes: readonly FieldChange[]
  /** What is to be written; null for `remove`. */
  readonly subscription: Subscription | null
}

export interface PlanOptions {
  readonly nowMs: number
  readonly guard: GuardPolicy
  readonly maxTimeoutMs?: number
  readonly prune: { readonly tenant: string | null } | null
}

export interface SubscriptionPlan {
  readonly items: readonly PlannedSubscription[]
  /** One line each; with any of them nothing may be written. */
  readonly problems: readonly string[]
}

/**
 * What must happen for the table to be as the file says. A file says everything of a subscription but what lives
 * elsewhere: left out, `status` stays (an endpoint that answered 410 is not switched on again by every run), and so do
 * `secrets` (rotating them is done by command).
 */
export function planSubscriptions(
  wanted: readonly unknown[],
  table: SubscriptionTable,
  options: PlanOptions,
): SubscriptionPlan {
  const items: PlannedSubscription[] = []
  const problems: string[] = []
  const seen = new Set<string>()
  for (const [index, input] of wanted.entries()) {
    const id = idOf(input)
    const label = id === null ? `item ${index + 1}` : id
    const add = (problem: Problem) => problems.push(`${label}: ${problemText(problem)}`)
    if (id === null) {
      add({ field: 'id', value: '', message: 'is missing', remedy: 'give every subscription of a file its id' })
      continue
    }
    if (seen.has(id)) {
      add({ field: 'id', value: '', message: 'stands there twice', remedy: 'keep one of them' })
      continue
    }
    seen.add(id)
    const entry = table.get(id)
    if (entry?.ok === false && entry.code === 'unknown-version') {
      problems.push(`${id}: ${entry.reason}`)
      continue
    }
    const existing = entry?.ok === true ? entry.value : undefined
    for (const problem of [...newSecretProblems(input), ...maskedProblems(input)]) add(problem)
    const checked = validateSubscriptionInput(withKept(input as Record<string, unknown>, existing), {
      nowMs: options.nowMs,
      guard: options.guard,
      ...(options.maxTimeoutMs === undefined ? {} : { maxTimeoutMs: options.maxTimeoutMs }),
      ...(existing === undefined ? {} : { existing }),
    })
    if (!checked.ok) checked.problems.forEach(add)
    else items.push(planOne(id, existing, checked.value, entry !== undefined))
  }
  for (const [id, entry] of options.prune === null ? [] : table) {
    if (seen.has(id) || !entry.ok) continue
    if (options.prune?.tenant != null && entry.value.tenant !== options.prune.tenant) continue
    items.push({ id, action: 'remove', changes: [], subscription: null })
  }
  return { items, problems }
}

function planOne(
  id: string,
  before: Subscription | undefined,
  after: Subscription,
  known: boolean,
): PlannedSubscription {
  if (before === undefined) {
    // A record nobody can read is replaced: there is nothing to compare with.
    const changes = known ? [{ field: 'record', before: 'unreadable', after: 'readable' }] : []
    return { id, action: known ? 'update' : 'create', changes, subscription: after }
  }
  const changes = differences(before, after)
  return { id, action: changes.length === 0 ? 'unchanged' : 'update', changes, subscription: after }
}

/** Fields that differ, times of the record itself left out. Maps are compared key by key, lists as a whole. */
export function differences(before: Subscription, after: Subscription): FieldChange[] {
  const changes: FieldChange[] = []
  const compare = (a: unknown, b: unknown, field: string) => {
    if (isDeepStrictEqual(a, b)) return
    if (isMap(a) && isMap(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) compare(a[key], b[key], `${field}.${key}`)
    } else changes.push({ field, before: a, after: b })
  }
  const [a, b] = [before, after] as unknown as [Record<string, unknown>, Record<string, unknown>]
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (key !== 'v' && key !== 'createdAtMs' && key !== 'updatedAtMs') compare(a[key], b[key], key)
  }
  return changes.sort((x, y) => (x.field < y.field ? -1 : 1))
}

export function withKept(input: Record<string, unknown>, existing: Subscription | undefined): Record<string, unknown> {
  // What `show` prints may be given back as it is: the times are ours to keep.
  const { createdAtMs: _created, updatedAtMs: _updated, ...given } = input
  if (existing === undefined) return given
  const kept: Record<string, unknown> = {}
  if (given.status === undefined) {
    kept.status = existing.status
    if (existing.statusReason !== undefined) kept.statusReason = existing.statusReason
  }
  if (given.secrets === undefined) kept.secrets = existing.secrets
  return { ...kept, ...given }
}

/** `kafka:new` makes a secret and prints it once: for a person at a terminal, not for a file that is applied again and again. */
function newSecretProblems(input: unknown): Problem[] {
  const { secrets } = input as { secrets?: unknown }
  if (!Array.isArray(secrets)) return []
  return secrets.flatMap((secret: unknown, i) => {
    if ((secret as { ref?: unknown } | null)?.ref !== 'kafka:new') return []
    const remedy = 'add the subscription with `hooktide subscriptions add`, then leave secrets out of the file'
    return [{ field: `secrets[${i}].ref`, value: '', message: 'kafka:new makes no sense in a file', remedy }]
  })
}

/** What `list` and `show` hide would be written back as stars: a copy without its secrets must not replace the original. */
export function maskedProblems(input: unknown): Problem[] {
  const { url, headers, auth } = input as { url?: unknown; headers?: unknown; auth?: unknown }
  const fields = isMap(headers)
    ? Object.entries(headers).flatMap(([n, v]) => (v === '***' ? [`headers.${n}`] : []))
    : []
  if (typeof url === 'string' && url.endsWith('?***')) fields.push('url')
  const tokenUrl = isMap(auth) && isMap(auth.oauth2) ? auth.oauth2.tokenUrl : null
  if (typeof tokenUrl === 'string' && tokenUrl.endsWith('?***')) fields.push('auth.oauth2.tokenUrl')
  const remedy = 'print it with --reveal, or write the value'
  return fields.map((field) => ({ field, value: '', message: 'was hidden when it was printed', remedy }))
}

function idOf(input: unknown): string | null {
  if (!isMap(input)) return null
  return typeof input.id === 'string' && input.id !== '' ? input.id : null
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
