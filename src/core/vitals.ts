/** The vital signs of a process, read on demand (`/metrics`, `status`). Counts since start unless said otherwise. */
export interface Vitals {
  /** Deliveries in memory that could start now. */
  readonly readyDepth: number
  /** How long the oldest of them has been waiting; null: none waits. */
  readonly oldestReadyAgeMs: number | null
  readonly inFlight: { readonly count: number; readonly bytes: number }
  readonly tiers: readonly TierVitals[]
  /** Broker's clock above ours, ms; null: not known yet. */
  readonly clockOffsetMs: number | null
  /** Latency of the last settled commit; null: none yet. */
  readonly commitMs: number | null
  readonly lag: readonly Lag[]
  readonly staleResultsDropped: number
  readonly repeatsDropped: number
  readonly rejected: number
  /** Partitions paused now, by reason (`span`, `bytes`, `tier`, …). */
  readonly paused: Readonly<Record<string, number>>
  readonly lanes: readonly LaneVitals[]
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
  tiers: Object.freeze([]),
  clockOffsetMs: null,
  commitMs: null,
  lag: Object.freeze([]),
  staleResultsDropped: 0,
  repeatsDropped: 0,
  rejected: 0,
  paused: Object.freeze({}),
  lanes: Object.freeze([]),
})

/** What several parts of a process say, as one: amounts add up, of ages and due times the worst counts. */
export function mergeVitals(parts: readonly Partial<Vitals>[]): Vitals {
  const all = parts.map((part) => ({ ...noVitals, ...part }))
  const sum = (of: (v: Vitals) => number) => all.reduce((total, v) => total + of(v), 0)
  const paused: Record<string, number> = {}
  for (const v of all) for (const [reason, n] of Object.entries(v.paused)) paused[reason] = (paused[reason] ?? 0) + n
  return {
    readyDepth: sum((v) => v.readyDepth),
    oldestReadyAgeMs: worst(
      all.map((v) => v.oldestReadyAgeMs),
      Math.max,
    ),
    inFlight: { count: sum((v) => v.inFlight.count), bytes: sum((v) => v.inFlight.bytes) },
    tiers: mergeTiers(all.flatMap((v) => v.tiers)),
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
    paused,
    lanes: all.flatMap((v) => v.lanes),
  }
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
