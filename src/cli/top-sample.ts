import { type MetricSample, parseMetrics } from '../core/metrics-text.ts'
import type { Status } from '../operations/status-read.ts'

/** What `top` shows at one moment; null: this source does not say. Ages and delays ms. */
export interface TopSample {
  readonly atMs: number
  readonly source: 'instances' | 'kafka'
  readonly instances: readonly { readonly url: string; readonly error: string | null }[]
  readonly readyDepth: number | null
  readonly backlog: number | null
  readonly oldestReadyAgeMs: number | null
  readonly inFlight: number | null
  readonly maxInFlight: number | null
  readonly lanesConfigured: number | null
  readonly lanes: readonly TopLane[]
  readonly tiers: readonly TopTier[]
  readonly worst: readonly {
    readonly subscriptionId: string
    readonly oldestReadyAgeMs: number
    readonly failures: number
  }[]
  /** Amounts that only grow, for rates: attempts by settlement, events routed. */
  readonly counters: Readonly<Record<string, number>>
  readonly lines: Readonly<Record<string, number>>
  readonly parked: number | null
  readonly circuitsOpen: number | null
  readonly routerLag: number | null
  readonly clockOffsetMs: number | null
}

export interface TopLane {
  readonly lane: number
  /** Which instance, or which member of the group; null: nobody. */
  readonly owner: string | null
  readonly backlog: number | null
  readonly oldestReadyAgeMs: number | null
  /** Grows with what is done. */
  readonly done: number | null
}

export interface TopTier {
  readonly tier: string
  readonly waiting: number
  /** Below zero: overdue; null: nothing waits. */
  readonly lowestDueInMs: number | null
}

export interface InstancePage {
  readonly url: string
  /** Null: it could not be asked. */
  readonly text: string | null
  readonly error: string | null
}

/** The pages of all instances as one: amounts add up, of ages and due times the worst counts. */
export function sampleOfPages(pages: readonly InstancePage[], atMs: number): TopSample {
  const perPage = pages.map(({ url, text }) => ({ url, samples: parseMetrics(text ?? '', 'hooktide_') }))
  const all = perPage.flatMap(({ samples }) => samples)
  const of = (name: string) => all.filter((sample) => sample.name === `hooktide_${name}`)
  const total = (name: string) => orNull(of(name), (values) => values.reduce((a, b) => a + b, 0))
  const most = (name: string) => orNull(of(name), (values) => Math.max(...values))
  const oldest = most('oldest_ready_age_seconds')
  const offset = orNull(of('clock_offset_seconds'), (values) =>
    values.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a)),
  )
  return {
    atMs,
    source: 'instances',
    instances: pages.map(({ url, error }) => ({ url, error })),
    readyDepth: total('ready_depth'),
    backlog: total('ready_backlog'),
    oldestReadyAgeMs: oldest === null ? null : oldest * 1_000,
    inFlight: total('in_flight'),
    maxInFlight: total('in_flight_max'),
    lanesConfigured: most('lanes_configured'),
    lanes: lanesOf(perPage),
    tiers: tiersOf(of('tier_held'), of('tier_lowest_due_seconds')),
    worst: worstOf(of('subscription_oldest_ready_age_seconds'), of('subscription_failures')),
    counters: {
      ...sumBy(of('attempts_total'), 'settlement'),
      routed: total('events_routed_total') ?? 0,
      rejected: total('events_rejected_total') ?? 0,
    },
    lines: sumBy(of('lines'), 'state'),
    parked: total('parked_deliveries'),
    circuitsOpen: total('circuits_open'),
    // Each router says it of the whole group.
    routerLag: orNull(
      of('consumer_lag').filter(({ labels }) => labels.group?.endsWith('router') === true),
      (values) => Math.max(...values),
    ),
    clockOffsetMs: offset === null ? null : offset * 1_000,
  }
}

/** What Kafka alone says. */
export function sampleOfStatus(status: Status): TopSample {
  const ages = status.lanes.flatMap(({ oldestReadyMs }) => oldestReadyMs ?? [])
  const { blocked, draining, stopped } = status.parked
  const router = status.lag.filter(({ group }) => group.endsWith('router'))
  return {
    atMs: status.atMs,
    source: 'kafka',
    instances: [],
    readyDepth: null,
    backlog: status.lanes.reduce((sum, { ready }) => sum + ready, 0),
    oldestReadyAgeMs: ages.length === 0 ? 0 : Math.max(...ages),
    inFlight: status.inFlight,
    maxInFlight: null,
    lanesConfigured: status.lanes.length,
    lanes: status.lanes.map(({ lane, owner, ready, oldestReadyMs, committed }) => ({
      ...{ lane, owner, backlog: ready, oldestReadyAgeMs: oldestReadyMs, done: committed },
    })),
    tiers: status.tiers.map(({ tier, depth, lowestDueMs }) => ({
      ...{ tier, waiting: depth, lowestDueInMs: lowestDueMs === null ? null : lowestDueMs - status.atMs },
    })),
    worst: [],
    counters: { dead: status.dead.records, rejected: status.rejected.records },
    lines: { blocked, draining, stopped },
    parked: status.parked.deliveries,
    circuitsOpen: null,
    routerLag: router.length === 0 ? null : router.reduce((sum, { lag }) => sum + lag, 0),
    clockOffsetMs: null,
  }
}

/** Growth per second between two samples, by counter and by lane; empty where the first is missing or a process began anew. */
export function ratesBetween(
  before: TopSample | null,
  now: TopSample,
): { readonly counters: Readonly<Record<string, number>>; readonly lanes: ReadonlyMap<number, number> } {
  const counters: Record<string, number> = {}
  const lanes = new Map<number, number>()
  const seconds = before === null ? 0 : (now.atMs - before.atMs) / 1_000
  if (before === null || seconds <= 0) return { counters, lanes }
  for (const [name, value] of Object.entries(now.counters)) {
    const grown = value - (before.counters[name] ?? 0)
    if (grown >= 0) counters[name] = grown / seconds
  }
  const known = new Map(before.lanes.map(({ lane, done }) => [lane, done]))
  for (const { lane, done } of now.lanes) {
    const from = known.get(lane) ?? null
    if (done !== null && from !== null && done >= from) lanes.set(lane, (done - from) / seconds)
  }
  return { counters, lanes }
}

function lanesOf(pages: readonly { readonly url: string; readonly samples: readonly MetricSample[] }[]): TopLane[] {
  const lanes = new Map<number, TopLane>()
  for (const { url, samples } of pages) {
    const backlogs = new Map(
      samples.filter(({ name }) => name === 'hooktide_ready_backlog').map((s) => [s.labels.lane, s.value]),
    )
    for (const { name, labels, value } of samples) {
      if (name !== 'hooktide_lane_done_offsets') continue
      const lane = Number(labels.lane)
      const owner = hostOf(url)
      lanes.set(lane, { lane, owner, backlog: backlogs.get(labels.lane) ?? null, oldestReadyAgeMs: null, done: value })
    }
  }
  return [...lanes.values()].sort((a, b) => a.lane - b.lane)
}

function tiersOf(held: readonly MetricSample[], due: readonly MetricSample[]): TopTier[] {
  const waiting = sumBy(held, 'tier')
  return Object.entries(waiting).map(([tier, n]) => {
    const lowest = due.filter(({ labels }) => labels.tier === tier).map(({ value }) => value * 1_000)
    return { tier, waiting: n, lowestDueInMs: lowest.length === 0 ? null : Math.min(...lowest) }
  })
}

function worstOf(ages: readonly MetricSample[], failures: readonly MetricSample[]): TopSample['worst'] {
  const found = new Map<string, { subscriptionId: string; oldestReadyAgeMs: number; failures: number }>()
  const entry = (subscriptionId: string) => {
    const known = found.get(subscriptionId) ?? { subscriptionId, oldestReadyAgeMs: 0, failures: 0 }
    found.set(subscriptionId, known)
    return known
  }
  for (const { labels, value } of ages) {
    const one = entry(labels.subscription ?? '')
    one.oldestReadyAgeMs = Math.max(one.oldestReadyAgeMs, value * 1_000)
  }
  for (const { labels, value } of failures) entry(labels.subscription ?? '').failures += value
  return [...found.values()].sort((a, b) => b.oldestReadyAgeMs - a.oldestReadyAgeMs || b.failures - a.failures)
}

function sumBy(samples: readonly MetricSample[], by: string): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { labels, value } of samples) sums[labels[by] ?? ''] = (sums[labels[by] ?? ''] ?? 0) + value
  return sums
}

function orNull(samples: readonly MetricSample[], of: (values: number[]) => number): number | null {
  return samples.length === 0 ? null : of(samples.map(({ value }) => value))
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url
}
