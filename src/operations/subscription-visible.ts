import { loggableUrl } from '../core/attempt.ts'
import type { Subscription } from '../core/subscription.ts'
import type { AppliedPlan } from './contract.ts'
import type { FieldChange, PlannedAction, SubscriptionPlan } from './subscription-plan.ts'

/**
 * A subscription as it may be seen: tokens live in queries of URLs and in header values, so these are hidden unless the
 * operator asks for them.
 */
export function visible(subscription: Subscription, reveal: boolean): Subscription {
  if (reveal) return subscription
  const headers = Object.entries(subscription.headers ?? {}).map(([name]) => [name, '***'] as const)
  return {
    ...subscription,
    url: visibleUrl(subscription.url),
    ...(subscription.auth === undefined ? {} : { auth: visibleAuth(subscription.auth) }),
    ...(subscription.headers === undefined ? {} : { headers: Object.fromEntries(headers) }),
  }
}

/** Of credentials only references stand here; the token's server may be asked with a query. */
function visibleAuth(auth: NonNullable<Subscription['auth']>): NonNullable<Subscription['auth']> {
  const { oauth2 } = auth
  return oauth2 === undefined ? auth : { ...auth, oauth2: { ...oauth2, tokenUrl: visibleUrl(oauth2.tokenUrl) } }
}

function visibleUrl(url: string): string {
  const plain = loggableUrl(url)
  return URL.parse(url)?.search ? `${plain}?***` : plain
}

/** The plan as it may be seen: values of headers and URL queries are hidden here, too. */
export function visiblePlan(plan: SubscriptionPlan, applied: boolean, notes: readonly string[]): AppliedPlan {
  return {
    applied,
    plan: plan.items.map(({ id, action, changes, subscription }) => ({
      id,
      action,
      changes: changes.map(safeChange),
      url: subscription === null ? null : visibleUrl(subscription.url),
    })),
    counts: counts(plan),
    notes,
  }
}

/** A change may name all of `auth`, `auth.oauth2` or the URL alone: whatever is a URL in it is shown without its query. */
function safeAuth(value: unknown): unknown {
  if (typeof value === 'string') return /^https?:/i.test(value) ? visibleUrl(value) : value
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, safeAuth(member)]))
}

function counts(plan: SubscriptionPlan): Record<PlannedAction, number> {
  const n = { create: 0, update: 0, unchanged: 0, remove: 0 }
  for (const { action } of plan.items) n[action]++
  return n
}

function safeChange({ field, before, after }: FieldChange): FieldChange {
  const safe = (value: unknown): unknown => {
    if (value === undefined) return null
    if (field === 'url') return visibleUrl(String(value))
    if (field.startsWith('headers.')) return '***'
    if (field === 'auth' || field.startsWith('auth.')) return safeAuth(value)
    if (field === 'headers') return Object.fromEntries(Object.keys(value as object).map((name) => [name, '***']))
    return value
  }
  const [a, b] = [safe(before), safe(after)]
  // A change that only the hidden part shows must not look like none.
  const hidden = JSON.stringify(a) === JSON.stringify(b)
  return { field, before: a, after: hidden ? `${typeof b === 'string' ? b : JSON.stringify(b)} (changed)` : b }
}
