import { formatDuration } from '../config/units.ts'
import type { Count, Status } from '../operations/status-read.ts'
import { ago, plural, table, time } from './text.ts'

/** For people, in 100 columns: what waits, how long already, and whose it is. */
export function statusText(status: Status): string {
  const { groups, lanes, tiers, parked, dead, rejected, subscriptions, lag, atMs } = status
  const number = (n: number, exact: boolean) => `${exact ? '' : '~'}${n}`
  const oldest = Math.max(-1, ...lanes.map(({ oldestReadyMs }) => oldestReadyMs ?? -1))
  const ready = lanes.reduce((n, lane) => n + lane.ready, 0)
  const facts: [string, string][] = [
    ['at', time(atMs)],
    ['groups', groups.length === 0 ? 'none: no service has run' : groups.map(groupText).join(', ')],
    [
      'ready',
      oldest < 0
        ? '0'
        : `${number(
            ready,
            lanes.every(({ exact }) => exact),
          )}, oldest ${ago(oldest)}`,
    ],
    ['in flight', status.inFlight === null ? 'unknown (ask instances with --metrics-url)' : String(status.inFlight)],
    [
      'parked',
      `${plural(parked.deliveries, 'delivery', 'deliveries')} in ${plural(parked.lines, 'line')} (${parked.blocked} blocked, ${parked.stopped} stopped, ${parked.draining} draining)`,
    ],
    ['dead', countText(dead)],
    ['rejected', countText(rejected)],
    [
      'subscriptions',
      Object.entries(subscriptions)
        .flatMap(([name, n]) => (n > 0 || name === 'active' ? [`${n} ${name}`] : []))
        .join(', '),
    ],
  ]
  if (status.unreachable.length > 0) facts.push(['unreachable', status.unreachable.join(', ')])
  const lost = lag.filter((entry) => entry.lost > 0)
  for (const entry of lost)
    facts.push(['LOST', `${entry.lost} offsets of ${entry.topic} went by retention before they were done`])
  return [
    facts.map(([name, text]) => `${name.padEnd(14)}${text}`).join('\n'),
    table(
      [
        { title: 'LANE', right: true },
        { title: 'OWNER', max: 44 },
        { title: 'COMMITTED', right: true },
        { title: 'LAG', right: true },
        { title: 'READY', right: true },
        { title: 'OLDEST', right: true },
      ],
      lanes.map((lane) => [
        String(lane.lane),
        lane.owner ?? '-',
        lane.committed === null ? '-' : String(lane.committed),
        String(lane.lag),
        number(lane.ready, lane.exact),
        lane.oldestReadyMs === null ? '-' : ago(lane.oldestReadyMs),
      ]),
    ),
    table(
      [
        { title: 'TIER', max: 60 },
        { title: 'DELAY', right: true },
        { title: 'WAITING', right: true },
        { title: 'NEXT DUE' },
      ],
      tiers.map((tier) => [
        tier.tier,
        formatDuration(tier.delayMs),
        number(tier.depth, tier.exact),
        tier.lowestDueMs === null ? '-' : dueText(tier.lowestDueMs - atMs),
      ]),
    ),
    table(
      [
        { title: 'GROUP', max: 40 },
        { title: 'TOPIC', max: 44 },
        { title: 'LAG', right: true },
      ],
      lag.map((entry) => [entry.group, entry.topic, String(entry.lag)]),
    ),
  ].join('\n\n')
}

function groupText(group: Status['groups'][number]): string {
  return `${group.group} ${group.state} (${plural(group.members, 'member')})`
}

function countText(count: Count): string {
  return count.exact ? String(count.records) : `~${count.records}`
}

/** A tier whose head is late has no owner, or one that can't keep up. */
function dueText(ms: number): string {
  return ms >= 0 ? `in ${ago(ms)}` : `${ago(-ms)} ago`
}
