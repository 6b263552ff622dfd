import type { Ordering } from '../../src/core/subscription.ts'
import { delivers, type Endpoint, fails, flaky, rateLimits, slow } from '../sim/endpoints.ts'
import { between, pick, type Random, randomStream } from '../sim/random.ts'

export const faultKinds = ['kill', 'term', 'stop', 'broker', 'both', 'join'] as const
export type FaultKind = (typeof faultKinds)[number]
/** A round of faults, or the measure of a rolling restart. */
export type PlayKind = FaultKind | 'rolling'

export interface PlannedSubscription {
  readonly id: string
  readonly ordering: Ordering
  readonly types: readonly string[]
  readonly endpoint: Endpoint
  readonly about: string
  readonly maxInFlight?: number
}

/** One thing done to the running system, at a time counted from the first of the planned events. */
export type Strike =
  | { readonly t: 'kill' | 'term'; readonly atMs: number; readonly worker: number; readonly downMs: number }
  | { readonly t: 'stop'; readonly atMs: number; readonly worker: number; readonly forMs: number }
  | { readonly t: 'broker'; readonly atMs: number; readonly downMs: number }
  /** One more worker, or one less. */
  | { readonly t: 'join' | 'leave'; readonly atMs: number }

export interface PlannedEvent {
  readonly type: string
  readonly key: string | null
  readonly bytes: number
}

/** Everything a round's seed decides. */
export interface Plan {
  readonly seed: number
  readonly fault: FaultKind
  readonly workers: number
  readonly eventsPerSecond: number
  readonly events: readonly PlannedEvent[]
  readonly subscriptions: readonly PlannedSubscription[]
  readonly strikes: readonly Strike[]
}

const types = ['order.paid', 'order.sent', 'user.new', 'stock.low'] as const

export function planOf(seed: number, fault: FaultKind, records: number, sessionMs: number): Plan {
  const random = randomStream(seed, `chaos ${fault}`)
  // Faults need time to strike in.
  const eventsPerSecond = Math.min(150, records / 8)
  const workers = between(random, 2, 3)
  const keys = Array.from({ length: 24 }, (_, i) => `k${i}`)
  return {
    seed,
    fault,
    workers,
    eventsPerSecond,
    events: Array.from({ length: records }, () => ({
      type: pick(random, types),
      // One key has so much that its followers have to be parked when its head fails.
      key: random() < 0.1 ? null : random() < 0.35 ? 'hot' : pick(random, keys),
      bytes: random() < 0.01 ? 50_000 : between(random, 0, 400),
    })),
    subscriptions: subscriptions(random),
    strikes: strikes(random, fault, workers, (records / eventsPerSecond) * 1000, sessionMs),
  }
}

function subscriptions(random: Random): PlannedSubscription[] {
  const salt = between(random, 0, 999)
  const named = (id: string, rest: Omit<PlannedSubscription, 'id'>): PlannedSubscription => ({
    id: `${id}-${salt}`,
    ...rest,
  })
  return [
    named('steady', { ordering: 'key', types: ['*'], endpoint: delivers(2), about: 'by key, answers 200' }),
    named('flaky', {
      ordering: 'key',
      types: ['order.*'],
      endpoint: flaky(0.08),
      about: 'by key, 8 % of 503, 500, 429, resets',
    }),
    named('stubborn', {
      ordering: 'key',
      types: ['user.new'],
      endpoint: (request) => (request.random() < 0.02 ? fails(400)(request) : slow(5, 60)(request)),
      about: 'by key, 5–60 ms, 2 % of 400',
    }),
    named('whole', {
      ordering: 'subscription',
      types: ['stock.low'],
      endpoint: flaky(0.03),
      about: 'one line, 3 % of failures',
    }),
    named('slow', {
      ordering: 'none',
      types: ['order.paid'],
      endpoint: slow(50, 400),
      maxInFlight: 24,
      about: 'unordered, 50–400 ms',
    }),
    named('limited', {
      ordering: 'none',
      types: ['order.sent'],
      endpoint: rateLimits(60, 1_000),
      about: 'unordered, 429 above 60 a second',
    }),
    named('failing', {
      ordering: 'none',
      types: ['stock.low', 'user.new'],
      endpoint: (request) => (request.random() < 0.35 ? fails(500)(request) : delivers(5)(request)),
      about: 'unordered, 35 % of 500',
    }),
  ]
}

function strikes(random: Random, fault: FaultKind, workers: number, flowMs: number, sessionMs: number): Strike[] {
  const worker = () => between(random, 0, workers - 1)
  const at = (from: number, to: number) => Math.round(flowMs * from + random() * flowMs * (to - from))
  switch (fault) {
    case 'kill':
    case 'term': {
      const count = Math.max(2, Math.min(6, Math.round(flowMs / 2_500)))
      return Array.from({ length: count }, (_, i) => {
        const atMs = at((i + 0.1) / count, (i + 0.9) / count)
        return { t: fault, atMs, worker: worker(), downMs: between(random, 0, 1_500) }
      })
    }
    case 'stop':
      return [{ t: 'stop', atMs: at(0.1, 0.7), worker: worker(), forMs: sessionMs + between(random, 1_000, 5_000) }]
    case 'broker':
      return [{ t: 'broker', atMs: at(0.1, 0.8), downMs: between(random, 0, 3_000) }]
    case 'both': {
      const atMs = at(0.1, 0.6)
      return [
        { t: 'broker', atMs, downMs: between(random, 0, 2_000) },
        { t: 'kill', atMs: Math.max(0, atMs + between(random, -1_000, 4_000)), worker: worker(), downMs: 500 },
        { t: 'kill', atMs: at(0.7, 0.95), worker: worker(), downMs: 500 },
      ]
    }
    case 'join': {
      const count = Math.max(2, Math.min(12, Math.round(flowMs / 1_200)))
      return Array.from({ length: count }, (_, i) => ({
        t: random() < 0.5 ? 'join' : 'leave',
        atMs: at(i / count, (i + 0.9) / count),
      }))
    }
    default:
      return fault satisfies never
  }
}
