import { plural, table } from '../cli/text.ts'
import type { Spread, Summary, Tally } from './summary.ts'

const shownFindings = 20

/** The summary for a person. */
export function reportText(summary: Summary): string {
  const { total, latenessMs, findings } = summary
  const settled = total.delivered + total.dead + total.cancelled
  const lines = [
    '',
    `${plural(summary.events, 'event')} of ${summary.types} types and ${plural(summary.keys, 'ordering key')}, eight subscriptions, ${summary.seconds} s`,
    '',
    subscriptionTable(summary),
    '',
    `Deliveries   ${total.expected} expected: ${settled} settled (${total.delivered} delivered, ${deadText(total)})${setAside(total)}, ${total.lost} lost`,
    `Attempts     ${total.attempts} logged, ${summary.requests} received, ${total.duplicates} of them again; ${summary.retries} retries${unanswered(total)}`,
    `Signatures   ${summary.verified} of ${summary.requests} verified`,
    `Order        ${plural(summary.orderViolations, 'violation')} in the ordered keys`,
    `Latency      ${spreadText(total.latencyMs)} from produce to receipt, first attempts`,
    `Tiers        ${Object.entries(summary.tiers)
      .map(([tier, n]) => `${n} in ${tier}`)
      .join(', ')}`,
    `Lateness     ${spreadText(latenessMs)} from due to receipt, retries`,
    '',
  ]
  if (summary.ok) lines.push("All is as it must be, by Kafka's logs and the receiver's journal.")
  else {
    lines.push(`${plural(findings.length, 'finding')}:`)
    for (const { rule, text } of findings.slice(0, shownFindings)) lines.push(`  ${rule}: ${text}`)
    if (findings.length > shownFindings) lines.push(`  and ${findings.length - shownFindings} more (--json has all)`)
  }
  return lines.join('\n')
}

function subscriptionTable(summary: Summary): string {
  const columns = [
    { title: 'SUBSCRIPTION' },
    { title: 'EXPECTED', right: true },
    { title: 'DELIVERED', right: true },
    { title: 'DEAD', right: true },
    { title: 'ATTEMPTS', right: true },
    { title: 'P50 MS', right: true },
    { title: 'P99 MS', right: true },
    { title: 'ENDPOINT' },
  ]
  const rows = summary.subscriptions.map((item) => [
    item.id,
    String(item.expected),
    String(item.delivered),
    String(item.dead),
    String(item.attempts),
    ms(item.latencyMs.p50),
    ms(item.latencyMs.p99),
    item.about,
  ])
  return table(columns, rows)
}

function deadText({ dead, deadReasons }: Tally): string {
  const reasons = Object.entries(deadReasons).map(([reason, n]) => `${n} ${reason}`)
  return `${dead} dead${reasons.length === 0 ? '' : `: ${reasons.join(', ')}`}`
}

/** What a disabled subscription was not sent, told apart from what was lost. */
function setAside({ unmatched, held }: Tally): string {
  const parts = [
    ...(unmatched === 0 ? [] : [`${unmatched} not matched after the endpoint was gone`]),
    ...(held === 0 ? [] : [`${held} held for it`]),
  ]
  return parts.map((part) => `, ${part}`).join('')
}

/** The endpoints of the demo answer all they get: a time-out is the machine's. */
function unanswered(total: Tally): string {
  return total.unanswered === 0 ? '' : `; ${total.unanswered} not answered in time (this machine is busy)`
}

function spreadText({ p50, p99, max }: Spread): string {
  return `p50 ${ms(p50)} ms, p99 ${ms(p99)} ms, most ${ms(max)} ms`
}

function ms(value: number | null): string {
  return value === null ? '–' : String(Math.round(value))
}
