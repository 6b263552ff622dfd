import { ago, table } from './text.ts'
import { ratesBetween, type TopLane, type TopSample } from './top-sample.ts'

/** One screen, vital signs first. Rates are since `before`. */
export function topText(before: TopSample | null, now: TopSample): string {
  const rates = ratesBetween(before, now)
  const parts = [vitals(now, rates.counters)]
  const trouble = now.instances.filter(({ error }) => error !== null)
  if (trouble.length > 0) parts.push(trouble.map(({ url, error }) => `NO ANSWER  ${url}: ${error}`).join('\n'))
  parts.push(lanes(now, rates.lanes))
  if (now.tiers.length > 0) parts.push(tiers(now))
  if (now.worst.length > 0) parts.push(worst(now))
  else if (now.source === 'kafka')
    parts.push('Rates of attempts and the worst subscriptions: ask instances with --url.')
  return parts.join('\n\n')
}

function vitals(now: TopSample, rate: Readonly<Record<string, number>>): string {
  const { inFlight, maxInFlight, lines } = now
  const number = (n: number | null) => (n === null ? '-' : String(n))
  const share =
    inFlight === null || !maxInFlight ? '' : ` of ${maxInFlight} (${Math.round((100 * inFlight) / maxInFlight)} %)`
  const per = (name: string) => (rate[name] === undefined ? '-' : perSecond(rate[name]))
  const owned = now.lanes.filter(({ owner }) => owner !== null).length
  const facts: [string, string][] = [
    [
      'oldest ready',
      now.oldestReadyAgeMs === null ? '-' : now.oldestReadyAgeMs === 0 ? 'none waits' : ago(now.oldestReadyAgeMs),
    ],
    ['backlog', `${number(now.backlog)}${now.readyDepth === null ? '' : `, ${now.readyDepth} in memory`}`],
    ['in flight', `${number(inFlight)}${share}`],
    ['lanes', `${owned}${now.lanesConfigured === null ? '' : ` of ${now.lanesConfigured}`} owned`],
    [
      'per second',
      `routed ${per('routed')}, delivered ${per('done')}, scheduled ${per('scheduled')}, dead ${per('dead')}, rejected ${per('rejected')}`,
    ],
    [
      'lines',
      `${lines.blocked ?? 0} blocked, ${lines.draining ?? 0} draining, ${lines.stopped ?? 0} stopped; ${number(now.parked)} parked`,
    ],
    ['circuits open', number(now.circuitsOpen)],
    ['router lag', number(now.routerLag)],
  ]
  if (now.clockOffsetMs !== null) facts.push(['clock offset', `${Math.round(now.clockOffsetMs)}ms`])
  return facts.map(([name, text]) => `${name.padEnd(14)}${text}`).join('\n')
}

function lanes(now: TopSample, rates: ReadonlyMap<number, number>): string {
  const row = ({ lane, owner, backlog, oldestReadyAgeMs, done }: TopLane) => {
    const rate = rates.get(lane)
    const cells = [String(lane), owner ?? 'NOBODY', backlog === null ? '-' : String(backlog)]
    if (now.source === 'kafka') cells.push(oldestReadyAgeMs === null ? '-' : ago(oldestReadyAgeMs))
    return [...cells, done === null ? '-' : String(done), rate === undefined ? '-' : perSecond(rate)]
  }
  const right = true
  const oldest = now.source === 'kafka' ? [{ title: 'OLDEST', right }] : []
  return table(
    [
      { title: 'LANE', right },
      { title: 'OWNER', max: 44 },
      { title: 'BACKLOG', right },
      ...oldest,
      { title: 'DONE', right },
      { title: '/S', right },
    ],
    now.lanes.map(row),
  )
}

function tiers(now: TopSample): string {
  return table(
    [
      { title: 'TIER', max: 60 },
      { title: now.source === 'kafka' ? 'WAITING' : 'IN MEMORY', right: true },
      { title: 'NEXT DUE' },
    ],
    now.tiers.map(({ tier, waiting, lowestDueInMs: due }) => [
      tier,
      String(waiting),
      due === null ? '-' : due >= 0 ? `in ${ago(due)}` : `${ago(-due)} OVERDUE`,
    ]),
  )
}

function worst(now: TopSample): string {
  return table(
    [
      { title: 'WORST SUBSCRIPTIONS', max: 50 },
      { title: 'OLDEST READY', right: true },
      { title: 'FAILED IN A ROW', right: true },
    ],
    now.worst
      .slice(0, shown)
      .map((one) => [
        one.subscriptionId,
        one.oldestReadyAgeMs === 0 ? '-' : ago(one.oldestReadyAgeMs),
        String(one.failures),
      ]),
  )
}

function perSecond(rate: number): string {
  return rate >= 100 || Number.isInteger(rate) ? String(Math.round(rate)) : rate.toFixed(1)
}

const shown = 10
