import { stringify } from 'yaml'
import { loggableUrl } from '../core/attempt.ts'
import type { Subscription } from '../core/subscription.ts'
import type { AppliedPlan, SubscriptionList } from '../operations/contract.ts'
import { clip, plural, table } from './text.ts'

export function listText({ subscriptions, unreadable }: SubscriptionList): string {
  const columns = [
    { title: 'ID', max: 26 },
    { title: 'TENANT', max: 12 },
    { title: 'STATUS' },
    { title: 'ORDER' },
    { title: 'TYPES', max: 18 },
    { title: 'URL', max: 28 },
  ]
  const rows = [...subscriptions.map(row), ...unreadable.map(({ id }) => [id, '', 'unreadable', '', '', ''])]
  const lines = [
    table(
      columns,
      rows.sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
    ),
    plural(rows.length, 'subscription'),
  ]
  for (const { id, reason } of unreadable) lines.push(`${id} can not be read: ${reason}`)
  return lines.join('\n')
}

function row({ id, tenant, status, ordering, types, url }: Subscription): string[] {
  return [id, tenant, status, ordering === 'subscription' ? 'sub' : ordering, types.join(','), loggableUrl(url)]
}

export function showText(subscription: Subscription): string {
  const { createdAtMs, updatedAtMs, ...rest } = subscription
  const times = `# created ${new Date(createdAtMs).toISOString()}, changed ${new Date(updatedAtMs).toISOString()}`
  return `${times}\n${stringify(rest).trimEnd()}`
}

export function planText({ plan, counts }: AppliedPlan): string {
  const lines: string[] = []
  for (const { id, action, changes, url } of plan) {
    if (action === 'unchanged') continue
    const sign = { create: '+', update: '~', remove: '-' }[action]
    lines.push(`${sign} ${action} ${id}${action === 'create' && url !== null ? ` → ${url}` : ''}`)
    for (const { field, before, after } of changes) lines.push(`    ${field}: ${shown(before)} → ${shown(after)}`)
  }
  const entries = Object.entries(counts).filter(([, n]) => n > 0)
  lines.push(entries.map(([action, n]) => `${n} ${action}`).join(', '))
  return lines.join('\n')
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return 'unset'
  return clip(typeof value === 'string' ? value : JSON.stringify(value), 60)
}
