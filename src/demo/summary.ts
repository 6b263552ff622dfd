import { type Case, type Cases, type Fate, groupBy, isUnanswered } from './cases.ts'
import type { Finding } from './check.ts'
import type { Evidence } from './evidence.ts'

/** Milliseconds; null where nothing was measured. */
export interface Spread {
  readonly p50: number | null
  readonly p99: number | null
  readonly max: number | null
}

/** Deliveries by what became of them, and what it took. */
export interface Tally extends Readonly<Record<Fate, number>> {
  readonly expected: number
  readonly attempts: number
  /** Attempts without an answer in time. */
  readonly unanswered: number
  /** Requests received beyond the first of each attempt. */
  readonly duplicates: number
  readonly deadReasons: Readonly<Record<string, number>>
  /** From the event's produce time to the receipt of its first attempt. */
  readonly latencyMs: Spread
}

export interface Summary {
  readonly ok: boolean
  readonly run: string
  readonly events: number
  readonly types: number
  readonly keys: number
  readonly seconds: number
  readonly total: Tally
  readonly subscriptions: readonly ({ readonly id: string; readonly about: string; readonly status: string } & Tally)[]
  /** Records that waited in each tier. */
  readonly tiers: Readonly<Record<string, number>>
  readonly retries: number
  /** From a retry's due time to its receipt. */
  readonly latenessMs: Spread
  readonly requests: number
  readonly verified: number
  readonly orderViolations: number
  readonly findings: readonly Finding[]
}

export function summarize(
  evidence: Evidence,
  { cases }: Cases,
  findings: readonly Finding[],
  run: {
    readonly id: string
    readonly seconds: number
    aboutOf(subscriptionId: string): string
    tiers: readonly string[]
  },
): Summary {
  const moves = groupBy(evidence.tierMoves, ({ tier }) => tier)
  const lateness = cases.flatMap(latenessOf)
  return {
    ok: findings.length === 0,
    run: run.id,
    events: evidence.events.length,
    types: new Set(evidence.events.map(({ type }) => type)).size,
    keys: new Set(evidence.events.map(({ key }) => key)).size,
    seconds: Math.round(run.seconds * 10) / 10,
    total: tally(cases),
    subscriptions: evidence.subscriptions.map((subscription) => ({
      id: subscription.id,
      about: run.aboutOf(subscription.id),
      status: subscription.status,
      ...tally(cases.filter((item) => item.subscription === subscription)),
    })),
    tiers: Object.fromEntries(run.tiers.map((tier) => [tier, moves.get(tier)?.length ?? 0])),
    retries: lateness.length,
    latenessMs: spread(lateness),
    requests: evidence.requests.length,
    verified: evidence.requests.filter(({ signatureProblem }) => signatureProblem === null).length,
    orderViolations: findings.filter(({ rule }) => rule === 'order').length,
    findings,
  }
}

function tally(cases: readonly Case[]): Tally {
  const count = (fate: Fate) => cases.filter((item) => item.fate === fate).length
  const deadReasons: Record<string, number> = {}
  for (const { fate, dead } of cases) {
    if (fate !== 'dead') continue
    const reason = dead[0]?.reason ?? 'unknown'
    deadReasons[reason] = (deadReasons[reason] ?? 0) + 1
  }
  return {
    expected: cases.length,
    delivered: count('delivered'),
    dead: count('dead'),
    cancelled: count('cancelled'),
    unmatched: count('unmatched'),
    held: count('held'),
    lost: count('lost'),
    attempts: cases.reduce((sum, item) => sum + item.attempts.length, 0),
    unanswered: cases.reduce((sum, item) => sum + item.attempts.filter(isUnanswered).length, 0),
    duplicates: cases.reduce((sum, { requests }) => {
      return sum + requests.length - new Set(requests.map(({ attempt }) => attempt)).size
    }, 0),
    deadReasons,
    latencyMs: spread(
      cases.flatMap(({ event, requests }) => (requests[0] === undefined ? [] : [requests[0].atMs - event.timeMs])),
    ),
  }
}

function latenessOf({ attempts, requests }: Case): number[] {
  return attempts.flatMap(({ attempt, dueMs }) => {
    const next = requests.find((request) => request.attempt === attempt + 1)
    return dueMs === null || next === undefined ? [] : [next.atMs - dueMs]
  })
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}
