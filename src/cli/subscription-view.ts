import { stringify } from 'yaml'
import { loggableUrl } from '../core/attempt.ts'
import type { Result } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import type { FieldChange, SubscriptionPlan } from '../operations/subscription-plan.ts'
import type { SubscriptionTable } from '../operations/subscription-store.ts'
import { clip, plural, table } from './text.ts'

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
    ...(subscription.headers === undefined ? {} : { headers: Object.fromEntries(headers) }),
  }
}

function visibleUrl(url: string): string {
  const plain = loggableUrl(url)
  return URL.parse(url)?.search ? `${plain}?***` : plain
}

/** Stable shape of `list --json`. */
export function listJson(entries: SubscriptionTable, reveal: boolean): object {
  return {
    subscriptions: [...entries].flatMap(([, entry]) => (entry.ok ? [visible(entry.value, reveal)] : [])),
    unreadable: [...entries].flatMap(([id, entry]) => (entry.ok ? [] : [{ id, reason: entry.reason }])),
  }
}

export function listText(entries: SubscriptionTable): string {
  const rows = [...entries].map(([id, entry]) => row(id, entry))
  const lines = [
    table(
      [
        { title: 'ID', max: 26 },
        { title: 'TENANT', max: 12 },
        { title: 'STATUS' },
        { title: 'ORDER' },
        { title: 'TYPES', max: 18 },
        { title: 'URL', max: 28 },
      ],
      rows,
    ),
    plural(entries.size, 'subscription'),
  ]
  for (const [id, entry] of entries) if (!entry.ok) lines.push(`${id} can not be read: ${entry.reason}`)
  return lines.join('\n')
}

function row(id: string, entry: Result<Subscription>): string[] {
  if (!entry.ok) return [id, '', 'unreadable', '', '', '']
  const { tenant, status, ordering, types, url } = entry.value
  return [id, tenant, status, ordering === 'subscription' ? 'sub' : ordering, types.join(','), loggableUrl(url)]
}

export function showText(subscription: Subscription): string {
  const { createdAtMs, updatedAtMs, ...rest } = subscription
  const times = `# created ${new Date(createdAtMs).toISOString()}, changed ${new Date(updatedAtMs).toISOString()}`
  return `${times}\n${stringify(rest).trimEnd()}`
}

/** Stable shape of `apply --json`. Values of headers and URL queries are hidden here, too. */
export function planJson(plan: SubscriptionPlan, applied: boolean): object {
  return {
    applied,
    plan: plan.items.map(({ id, action, changes }) => ({ id, action, changes: changes.map(safeChange) })),
    counts: counts(plan),
  }
}

export function planText(plan: SubscriptionPlan): string {
  const lines: string[] = []
  for (const { id, action, changes, subscription } of plan.items) {
    if (action === 'unchanged') continue
    const sign = { create: '+', update: '~', remove: '-' }[action]
    const detail = action === 'create' && subscription !== null ? ` → ${visibleUrl(subscription.url)}` : ''
    lines.push(`${sign} ${action} ${id}${detail}`)
    for (const change of changes) {
      const { field, before, after } = safeChange(change)
      lines.push(`    ${field}: ${shown(before)} → ${shown(after)}`)
    }
  }
  const entries = Object.entries(counts(plan)).filter(([, n]) => n > 0)
  lines.push(entries.map(([action, n]) => `${n} ${action}`).join(', '))
  return lines.join('\n')
}

function counts(plan: SubscriptionPlan): Record<string, number> {
  const n = { create: 0, update: 0, unchanged: 0, remove: 0 }
  for (const { action } of plan.items) n[action]++
  return n
}

function safeChange({ field, before, after }: FieldChange): FieldChange {
  const safe = (value: unknown): unknown => {
    if (value === undefined) return null
    if (field === 'url') return visibleUrl(String(value))
    if (field.startsWith('headers.')) return '***'
    if (field === 'headers') return Object.fromEntries(Object.keys(value as object).map((name) => [name, '***']))
    return value
  }
  const [a, b] = [safe(before), safe(after)]
  // A change that only the hidden part shows must not look like none.
  const hidden = JSON.stringify(a) === JSON.stringify(b)
  return { field, before: a, after: hidden ? `${String(b)} (changed)` : b }
}

function shown(value: unknown): string {
  if (value === null) return 'unset'
  return clip(typeof value === 'string' ? value : JSON.stringify(value), 60)
}
