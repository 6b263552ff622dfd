/** The vital signs of a process, read on demand (`/metrics`, `status`). Counts since start unless said otherwise. */
export interface Vitals {
  /** Deliveries in memory that could start now. */
  readonly readyDepth: number
  /** How long the oldest of them has been waiting; null: none waits. */
  readonly oldestReadyAgeMs: number | null
  readonly inFlight: { readonly count: number; readonly bytes: number }
  /** Most POSTs that may be open; 0: this process makes none. */
  readonly maxInFlight: number
  /** Of the lanes owned here, what of `deliveries` is not done: what more deliverers would help with. */
  readonly backlog: readonly LaneBacklog[]
  /** Lanes there are, whoever owns them; null: this process does not deliver. */
  readonly laneCount: number | null
  readonly tiers: readonly TierVitals[]
  /** Since Kafka last confirmed a membership of ours, ms; null: there is none. */
  readonly membershipAgeMs: number | null
  /** Broker's clock above ours, ms; null: not known yet. */
  readonly clockOffsetMs: number | null
  /** Duration of the slowest of the lanes' last commits; null: none yet. */
  readonly commitMs: number | null
  readonly lag: readonly Lag[]
  readonly staleResultsDropped: number
  readonly repeatsDropped: number
  readonly rejected: number
  /** Partitions paused now, by reason (`span`, `bytes`, `tier`, …). */
  readonly paused: Readonly<Record<string, number>>
  readonly lanes: readonly LaneVitals[]
  /** Lines that are not open, by state, and the deliveries parked behind them. */
  readonly lines: Readonly<Record<string, { readonly lines: number; readonly parked: number }>>
  /** Subscriptions whose backlog is passed by. */
  readonly bypassed: number
  /** Circuits that are not closed, by scope. */
  readonly circuits: Readonly<Record<string, number>>
  /** The table of subscriptions, by status. */
  readonly subscriptions: Readonly<Record<string, number>>
  /** Parts of jobs worked here. */
  readonly jobParts: number | null
  /** Records that are in the log and not in the delivery state; null: it is not kept here. */
  readonly projectorLag: number | null
  /** The worst subscriptions only: see `worstSubscriptions`. */
  readonly worst: readonly SubscriptionVitals[]
}

export interface LaneBacklog {
  readonly lane: number
  /** Null: where the log ends is not known now. */
  readonly records: number | null
  /** Offsets below the reader less those that are not done: it stands still when the lane does. */
  readonly done: number
}

/** Of one subscription, in this process. */
export interface SubscriptionVitals {
  readonly subscriptionId: string
  /** How long its oldest ready delivery has been waiting; 0: none waits. */
  readonly oldestReadyAgeMs: number
  /** Attempts that failed in a row, its last one included. */
  readonly failures: number
}

export interface TierVitals {
  /** The rung's name, e.g. `10s`. */
  readonly tier: string
  /** Waiting in memory; what waits in Kafka behind them is not counted. */
  readonly held: number
  /** Lowest due time waiting here (epoch ms); null: nothing waits. */
  readonly lowestDueMs: number | null
  readonly promoted: number
}

export interface LaneVitals {
  readonly lane: number
  /** `gaining`, `running`, `draining`, … */
  readonly state: string
}

export interface Lag {
  readonly group: string
  readonly topic: string
  /** Records behind the committed positions, all partitions together. */
  readonly records: number
}

export const noVitals: Vitals = Object.freeze({
  readyDepth: 0,
  oldestReadyAgeMs: null,
  inFlight: Object.freeze({ count: 0, bytes: 0 }),
  maxInFlight: 0,
  backlog: Object.freeze([]),
  laneCount: null,
  tiers: Object.freeze([]),
  membershipAgeMs: null,
  clockOffsetMs: null,
  commitMs: null,
  lag: Object.freeze([]),
  staleResultsDropped: 0,
  repeatsDropped: 0,
  rejected: 0,
  paused: Object.freeze({}),
  lanes: Object.freeze([]),
  lines: Object.freeze({}),
  bypassed: 0,
  circuits: Object.freeze({}),
  subscriptions: Object.freeze({}),
  jobParts: null,
  projectorLag: null,
  worst: Object.freeze([]),
})

/** What several parts of a process say, as one: amounts add up, of ages and due times the worst counts. */
export function mergeVitals(parts: readonly Partial<Vitals>[]): Vitals {
  const all = parts.map((part) => ({ ...noVitals, ...part }))
  const sum = (of: (v: Vitals) => number) => all.reduce((total, v) => total + of(v), 0)
  return {
    readyDepth: sum((v) => v.readyDepth),
    oldestReadyAgeMs: worst(
      all.map((v) => v.oldestReadyAgeMs),
      Math.max,
    ),
    inFlight: { count: sum((v) => v.inFlight.count), bytes: sum((v) => v.inFlight.bytes) },
    maxInFlight: sum((v) => v.maxInFlight),
    backlog: all.flatMap((v) => v.backlog),
    laneCount: worst(
      all.map((v) => v.laneCount),
      Math.max,
    ),
    tiers: mergeTiers(all.flatMap((v) => v.tiers)),
    membershipAgeMs: worst(
      all.map((v) => v.membershipAgeMs),
      Math.max,
    ),
    clockOffsetMs: worst(
      all.map((v) => v.clockOffsetMs),
      (a, b) => (Math.abs(a) >= Math.abs(b) ? a : b),
    ),
    commitMs: worst(
      all.map((v) => v.commitMs),
      Math.max,
    ),
    lag: all.flatMap((v) => v.lag),
    staleResultsDropped: sum((v) => v.staleResultsDropped),
    repeatsDropped: sum((v) => v.repeatsDropped),
    rejected: sum((v) => v.rejected),
    paused: added(all.map((v) => v.paused)),
    lanes: all.flatMap((v) => v.lanes),
    lines: mergeLines(all.map((v) => v.lines)),
    bypassed: sum((v) => v.bypassed),
    circuits: added(all.map((v) => v.circuits)),
    subscriptions: added(all.map((v) => v.subscriptions)),
    jobParts: worst(
      all.map((v) => v.jobParts),
      (a, b) => a + b,
    ),
    projectorLag: worst(
      all.map((v) => v.projectorLag),
      Math.max,
    ),
    worst: all.flatMap((v) => v.worst),
  }
}

/**
 * Those that somebody should look at: the `most` whose oldest delivery waits longest, and the `most` that failed most often in a
 * row. However many subscriptions there are, no more than 2 × `most` come out.
 */
export function worstSubscriptions(all: readonly SubscriptionVitals[], most: number): SubscriptionVitals[] {
  if (most === 0) return []
  const top = (of: (v: SubscriptionVitals) => number) =>
    all
      .filter((v) => of(v) > 0)
      .sort((a, b) => of(b) - of(a) || (a.subscriptionId < b.subscriptionId ? -1 : 1))
      .slice(0, most)
  return [...new Set([...top((v) => v.oldestReadyAgeMs), ...top((v) => v.failures)])]
}

function added(parts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {}
  for (const part of parts) for (const [name, n] of Object.entries(part)) total[name] = (total[name] ?? 0) + n
  return total
}

function mergeLines(parts: readonly Vitals['lines'][]): Vitals['lines'] {
  const total: Record<string, { lines: number; parked: number }> = {}
  for (const part of parts) {
    for (const [state, { lines, parked }] of Object.entries(part)) {
      const known = total[state] ?? { lines: 0, parked: 0 }
      total[state] = { lines: known.lines + lines, parked: known.parked + parked }
    }
  }
  return total
}

function mergeTiers(parts: readonly TierVitals[]): TierVitals[] {
  const byTier = new Map<string, TierVitals>()
  for (const part of parts) {
    const known = byTier.get(part.tier)
    if (known === undefined) byTier.set(part.tier, part)
    else
      byTier.set(part.tier, {
        tier: part.tier,
        held: known.held + part.held,
        lowestDueMs: worst([known.lowestDueMs, part.lowestDueMs], Math.min),
        promoted: known.promoted + part.promoted,
      })
  }
  return [...byTier.values()]
}

function worst(values: readonly (number | null)[], of: (a: number, b: number) => number): number | null {
  return values.reduce((worse, value) => (worse === null ? value : value === null ? worse : of(worse, value)), null)
}
