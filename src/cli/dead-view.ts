import type { RedriveReport } from '../operations/contract.ts'
import type { DeadJson, DeadShown } from '../operations/dead-json.ts'
import { oneLine, plural, table, time } from './text.ts'

export function deadTable(letters: readonly DeadJson[]): string {
  return table(
    [
      { title: 'DIED' },
      { title: 'SUBSCRIPTION', max: 18 },
      { title: 'TYPE', max: 16 },
      { title: 'TRIES', right: true },
      { title: 'REASON' },
      { title: 'ERROR', max: 16 },
      { title: 'AT', max: 10 },
    ],
    letters.map(({ deadAtMs, subscriptionId, eventType, attempts, reason, error, partition, offset }) => [
      time(deadAtMs).slice(5),
      subscriptionId ?? '?',
      eventType ?? '?',
      String(attempts ?? '?'),
      reason,
      error ?? '',
      `${partition}/${offset}`,
    ]),
  )
}

const previewBytes = 2048

export function deadText({ times: _, headers: texts, body: base64, ...letter }: DeadShown): string {
  const body = Buffer.from(base64, 'base64')
  const fields = Object.entries(letter).map(([name, value]) => {
    const shown = name.endsWith('Ms') && typeof value === 'number' ? time(value) : (value ?? '-')
    return `${name.replace(/Ms$/, '').padEnd(16)}${oneLine(String(shown))}`
  })
  const headers = Object.entries(texts).map(([n, v]) => `  ${oneLine(`${n}: ${v}`)}`)
  const more = body.length > previewBytes ? ` (first ${previewBytes} of ${body.length} bytes; --body prints all)` : ''
  return [...fields, 'headers', ...headers, `body${more}`, bodyPreview(body)].join('\n')
}

/** The beginning of a body as text, or as hex when it is none. */
export function bodyPreview(body: Buffer): string {
  const part = body.subarray(0, previewBytes)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(part, { stream: body.length > previewBytes })
    return text
      .split('\n')
      .map((line) => `  ${oneLine(line.replaceAll('\t', '  '))}`)
      .join('\n')
  } catch {
    return `  ${part
      .subarray(0, 512)
      .toString('hex')
      .replace(/(.{64})(?=.)/g, '$1\n  ')}`
  }
}

export function redriveText(report: RedriveReport): string {
  const { job, dryRun, redriven, repeated, unreadable, orphaned, cursor } = report
  const lines = [`${plural(redriven, 'dead letter')} ${dryRun ? 'would be redriven' : `redriven as job ${job}`}`]
  if (repeated > 0) lines.push(`${repeated} more are the same deliveries, dead again: sent once`)
  if (orphaned > 0) lines.push(`${orphaned} left out: their subscription is gone`)
  if (unreadable > 0) lines.push(`${unreadable} left out: their headers can not be read`)
  if (cursor !== null) lines.push(`Interrupted. Go on with --cursor ${cursor}`)
  return lines.join('\n')
}
