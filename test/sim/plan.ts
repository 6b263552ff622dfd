import type { Ordering } from '../../src/core/subscription.ts'
import {
  breaks,
  changes,
  delivers,
  type Endpoint,
  fails,
  failsFirst,
  flaky,
  gone,
  hangs,
  rateLimits,
  slow,
} from './endpoints.ts'
import { everyFault, type Faults, noFaults, someFaults } from './faults.ts'
import { type Features, featuresOf } from './features.ts'
import { between, pick, type Random, randomStream } from './random.ts'

export type Mode = 'safety' | 'liveness'

export interface PlannedSubscription {
  readonly id: string
  readonly ordering: Ordering
  readonly types: readonly string[]
  readonly endpoint: Endpoint
  readonly kind: string
  readonly maxInFlight?: number
  /** Made while events flow already. */
  readonly atMs: number
}

/** What is done to a subscription while the world runs. */
export type Change =
  | { readonly t: 'url'; readonly endpoint: Endpoint; readonly kind: string }
  | { readonly t: 'ordering'; readonly ordering: Ordering }
  | { readonly t: 'pause'; readonly forMs: number }
  | { readonly t: 'delete' }

export interface PlannedEvent {
  readonly atMs: number
  readonly partition: number
  readonly type: string
  readonly key: string | null
  readonly bytes: number
}

/** Everything a seed decides, apart from the dice of the faults. */
export interface Plan {
  readonly seed: number
  readonly mode: Mode
  readonly workers: number
  readonly lanes: number
  readonly eventPartitions: number
  readonly subscriptions: readonly PlannedSubscription[]
  readonly changes: readonly { readonly atMs: number; readonly subscription: string; readonly change: Change }[]
  readonly events: readonly PlannedEvent[]
  /** Orderly restarts of a worker. */
  readonly restarts: readonly { readonly atMs: number; readonly worker: number }[]
  /** The events topic is emptied and starts at offset 0 again; the workers are down meanwhile. */
  readonly recreateAtMs: number | null
  /** Faults strike until here. */
  readonly faultsUntilMs: number
  readonly faults: Faults
  readonly features: Features
  readonly small: boolean
  readonly maxFetchRecords: number
  readonly maxAttempts: number
  /** Circuit breakers on, and little credit for dead letters. */
  readonly circuits: boolean
  /** When all must be final, counted from the end of the faults. */
  readonly boundMs: number
}

export const eventTypes = ['order.paid', 'order.sent', 'user.new'] as const

export function planOf(seed: number, mode: Mode, only: readonly string[] | null = null): Plan {
  const random = randomStream(seed, `plan ${mode}`)
  const chance = (p: number) => random() < p
  const eventPartitions = between(random, 1, 3)
  const workers = between(random, 1, 3)
  const lanes = between(random, 1, 6)
  const count = mode === 'safety' ? 200 : 60
  const flowMs = between(random, 2_000, 12_000)
  const keys = ['a', 'b', 'c', 'd'].slice(0, between(random, 1, 4))
  const events = Array.from({ length: count }, () => {
    const key = chance(0.15) ? null : pick(random, keys)
    return {
      atMs: Math.floor(random() * flowMs),
      // One key, one partition: else its events have no order to keep.
      partition: key === null ? between(random, 0, eventPartitions - 1) : key.charCodeAt(0) % eventPartitions,
      type: pick(random, eventTypes),
      key,
      bytes: chance(0.02) ? 20_000 : between(random, 0, 300),
    }
  }).sort((a, b) => a.atMs - b.atMs)
  const subscriptions = Array.from({ length: between(random, 2, 5) }, (_, i) => ({
    id: `s${i}`,
    ordering: pick(random, ['key', 'key', 'subscription', 'none'] as const),
    types: chance(0.5) ? [pick(random, eventTypes)] : chance(0.5) ? ['order.*'] : ['*'],
    ...endpointOf(random),
    ...(chance(0.3) ? { maxInFlight: between(random, 1, 4) } : {}),
    atMs: chance(0.2) ? Math.floor(random() * flowMs) : -1,
  }))
  const planned: { atMs: number; subscription: string; change: Change }[] = []
  for (const { id } of subscriptions) {
    if (!chance(0.35)) continue
    const change = pick(random, ['url', 'ordering', 'pause', 'pause', 'delete'] as const)
    planned.push({ atMs: between(random, 500, flowMs + 2_000), subscription: id, change: changeOf(change, random) })
  }
  const faultsUntilMs = flowMs + between(random, 0, 6_000)
  const restarts = chance(0.4)
    ? [{ atMs: between(random, 1_000, faultsUntilMs), worker: between(random, 0, workers - 1) }]
    : []
  const recreateAtMs = chance(0.08) ? Math.floor(flowMs * 0.6) : null
  const faults = faultsOf(seed, mode, random, only)
  const marked = subscriptions.map((s) => ({
    ...s,
    reordered: planned.some(({ subscription, change }) => subscription === s.id && change.t === 'ordering'),
  }))
  const retention = faults.retentionEveryMs > 0
  return {
    seed,
    mode,
    workers,
    lanes,
    eventPartitions,
    subscriptions,
    changes: planned.sort((a, b) => a.atMs - b.atMs),
    events,
    restarts,
    recreateAtMs,
    faultsUntilMs,
    faults,
    features: featuresOf(seed, mode, marked, { flowMs, tiers: ['retry-1s', 'retry-4s'], retention }),
    small: chance(0.6),
    maxAttempts: between(random, 2, 5),
    circuits: chance(0.4),
    maxFetchRecords: pick(random, [3, 20, 100]),
    boundMs: mode === 'safety' ? 3_600_000 : 900_000,
  }
}

function faultsOf(seed: number, mode: Mode, random: Random, only: readonly string[] | null): Faults {
  // A run is short: what comes with time comes more often than in `everyFault`.
  const dose: Faults = {
    ...everyFault,
    crash: 0.001,
    leaderMoveEveryMs: 4_000,
    coordinatorMoveEveryMs: 6_000,
    stallEveryMs: 6_000,
    expireEveryMs: 8_000,
    clockJumpEveryMs: 8_000,
    compactEveryMs: 2_000,
    retentionEveryMs: random() < 0.15 ? 3_000 : 0,
  }
  if (only !== null) {
    const chosen = Object.entries(dose).map(([name, value]) => [name, only.includes(name) ? value : 0])
    return { ...noFaults, ...Object.fromEntries(chosen) }
  }
  if (random() < 0.05) return noFaults
  return someFaults(seed * 2 + (mode === 'safety' ? 0 : 1), dose)
}

function endpointOf(random: Random): { endpoint: Endpoint; kind: string } {
  const kind = pick(random, [
    'delivers',
    'delivers',
    'slow',
    'flaky',
    'flaky',
    'veryFlaky',
    'failsFirst',
    'rateLimits',
    'outage',
    'hangs',
    'gone',
    'rejects',
    'breaks',
  ] as const)
  return { kind, endpoint: make(kind, random) }
}

function make(kind: string, random: Random): Endpoint {
  switch (kind) {
    case 'slow':
      return slow(20, 1_500)
    case 'flaky':
      return flaky(0.2)
    case 'veryFlaky':
      return flaky(0.6)
    case 'failsFirst':
      return failsFirst(between(random, 1, 3))
    case 'rateLimits':
      return rateLimits(5, 1_000)
    case 'outage':
      return changes(fails(503), startMs + between(random, 1_000, 15_000), delivers())
    case 'hangs':
      return changes(hangs(), startMs + between(random, 500, 6_000), slow(5, 100))
    case 'gone':
      return changes(delivers(), startMs + between(random, 500, 8_000), gone())
    case 'rejects':
      return (request) => (request.random() < 0.3 ? fails(400)(request) : delivers()(request))
    case 'breaks':
      return (request) => (request.random() < 0.4 ? breaks('reset', true)(request) : slow(1, 30)(request))
    default:
      return delivers()
  }
}

function changeOf(t: 'url' | 'ordering' | 'pause' | 'delete', random: Random): Change {
  switch (t) {
    case 'url':
      return { t, ...endpointOf(random) }
    case 'ordering':
      return { t, ordering: pick(random, ['key', 'subscription', 'none'] as const) }
    case 'pause':
      return { t, forMs: between(random, 200, 10_000) }
    case 'delete':
      return { t }
    default:
      return t satisfies never
  }
}

/** Wall clock at the beginning of a run. */
export const startMs = 1_800_000_000_000
