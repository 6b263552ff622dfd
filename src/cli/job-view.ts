import type { ReplayPreview } from '../operations/job-contract.ts'
import type { JobJson } from '../operations/job-json.ts'
import { ago, plural, table, time } from './text.ts'

export function jobTable(jobs: readonly JobJson[]): string {
  return table(
    [
      { title: 'job' },
      { title: 'kind' },
      { title: 'subscription', max: 40 },
      { title: 'state' },
      { title: 'done', right: true },
      { title: 'written', right: true },
      { title: 'started' },
      { title: 'by', max: 40 },
    ],
    jobs.map((job) => [
      job.id,
      job.kind,
      job.subscription ?? 'all',
      job.state,
      percent(job),
      String(job.written),
      time(job.atMs),
      job.by,
    ]),
  )
}

export function jobText(job: JobJson): string {
  const what = job.kind === 'replay' ? `replay for ${job.subscription}` : `redrive of ${job.subscription ?? 'all'}`
  const limits = [
    ...(job.untilLive ? ['until live'] : []),
    ...(job.perSecond === null ? [] : [`at most ${job.perSecond}/s`]),
    ...Object.entries(job.filter).map(
      ([name, value]) => `${name} ${name.endsWith('Ms') ? time(Number(value)) : value}`,
    ),
  ]
  const parts = job.parts.map(({ part, state, from, to, next, written, error }) => [
    part,
    state,
    `${from}–${to ?? 'live'}`,
    String(next),
    String(written),
    error ?? '',
  ])
  return [
    `job ${job.id}: ${what}${limits.length > 0 ? ` (${limits.join(', ')})` : ''}`,
    `started by ${job.by} at ${time(job.atMs)}${job.reason === null ? '' : `: ${job.reason}`}`,
    `${job.state}${job.cancelledBy === null ? '' : ` by ${job.cancelledBy}`}, ${progressText(job)}`,
    '',
    table(
      [
        { title: 'part' },
        { title: 'state' },
        { title: 'offsets' },
        { title: 'next', right: true },
        { title: 'written', right: true },
        { title: 'error' },
      ],
      parts,
    ),
  ].join('\n')
}

export function progressText(job: JobJson, etaMs: number | null = null): string {
  const eta = etaMs === null ? '' : `, ${ago(etaMs)} to go`
  const unreadable = job.unreadable === 0 ? '' : `, ${job.unreadable} unreadable`
  return `${percent(job)}: ${plural(job.written, 'delivery', 'deliveries')} written, ${job.passed} passed over${unreadable}${eta}`
}

export function previewText(preview: ReplayPreview): string {
  const { subscription, events, unreadable, wanted, reached, shadow, complete, examples } = preview
  const lines = [
    `${plural(events, 'event')} looked at, ${unreadable} of them unreadable`,
    `${wanted} would be sent to ${subscription}`,
  ]
  if (reached > 0) lines.push(`${reached} are left out: delivered, or waiting for a retry`)
  if (shadow !== null) {
    const { added, removed } = shadow
    lines.push(`${shadow.wanted} would be with the change: ${added} that are not sent now, ${removed} no longer`)
  }
  for (const { eventId, type, timeMs, sent } of examples) {
    lines.push(`  ${sent ? '+' : '-'} ${eventId}  ${type}  ${time(timeMs)}`)
  }
  if (!complete) lines.push('Not all: it took too long, or was interrupted.')
  return lines.join('\n')
}

function percent({ done, total, state }: JobJson): string {
  if (total === 0) return state === 'done' ? '100%' : '0%'
  return `${Math.min(100, Math.floor((done * 100) / total))}%`
}
