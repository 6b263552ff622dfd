import pLimit from 'p-limit'
import { type Lag, type LaneBacklog, type SubscriptionVitals, type Vitals, worstSubscriptions } from '../core/vitals.ts'
import type { Pipeline } from '../pipeline/assemble.ts'
import type { LaneRunner } from '../pipeline/lane-runner.ts'
import { sourceTopics } from '../pipeline/lane-topics.ts'
import type { PipelineSettings } from '../pipeline/pipeline-settings.ts'
import type { Clock, Kafka, LogReader } from '../ports.ts'

/** Ends of `deliveries` by partition, as they were last asked for; null: not known now. */
export type DeliveriesEnds = ReadonlyMap<number, number> | null

export interface VitalsSources {
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly lanes: number
  /** How many of the worst subscriptions are named; 0: none. */
  readonly worst: number
  ends(): DeliveriesEnds
}

/** The pipeline's vital signs at this moment. Quick: it only adds up what is in memory. */
export function readVitals({ pipeline, clock, lanes: laneCount, worst, ends }: VitalsSources): Partial<Vitals> {
  const { executor, deliverer, router, circuits } = pipeline
  const lanes = [...(deliverer?.lanes ?? [])]
  const oldest = executor.oldestReadyMs()
  const paused: Record<string, number> = {}
  for (const runner of lanes) {
    for (const { reason } of runner.lane?.flow.pauses() ?? []) paused[reason] = (paused[reason] ?? 0) + 1
  }
  for (const stream of router?.streams ?? []) if (stream.paused) paused.router = (paused.router ?? 0) + 1
  const commits = lanes.flatMap(({ lastCommitMs }) => lastCommitMs ?? [])
  return {
    readyDepth: executor.ready,
    oldestReadyAgeMs: oldest === null ? null : Math.max(0, clock.now() - oldest),
    inFlight: { count: executor.inFlight, bytes: executor.inFlightBytes },
    maxInFlight: deliverer === null ? 0 : executor.maxInFlight,
    backlog: lanes.flatMap((runner) => backlogOf(runner, ends())),
    laneCount: deliverer === null ? null : laneCount,
    membershipAgeMs: pipeline.leaseAgeMs(),
    clockOffsetMs: pipeline.clockOffset.estimateMs,
    commitMs: commits.length === 0 ? null : Math.max(...commits),
    paused,
    lanes: lanes.map((runner) => ({ lane: runner.partition, state: runner.status })),
    lines: linesOf(lanes),
    bypassed: lanes.reduce((sum, runner) => sum + (runner.lane?.bypass.size ?? 0), 0),
    circuits: { subscription: circuits.openOf('sub'), origin: circuits.openOf('origin') },
    subscriptions: subscriptionsByStatus(pipeline),
    jobParts: router?.jobParts ?? null,
    worst: worstSubscriptions(subscriptionsOf(pipeline, lanes, clock.now()), worst),
    tiers: tiersOf(pipeline, lanes),
  }
}

function backlogOf({ partition: lane, lane: owned }: LaneRunner, ends: DeliveriesEnds): LaneBacklog[] {
  if (owned === null) return []
  const { next, undone } = owned.ledger.deliveries
  const end = ends?.get(lane)
  return [{ lane, records: end === undefined ? null : Math.max(0, end - next) + undone, done: next - undone }]
}

function linesOf(lanes: readonly LaneRunner[]): Vitals['lines'] {
  // Named from the start: an alert on a growth must see the first one.
  const lines = {
    blocked: { lines: 0, parked: 0 },
    draining: { lines: 0, parked: 0 },
    stopped: { lines: 0, parked: 0 },
  }
  for (const { lane } of lanes) {
    for (const { state } of lane?.lines ?? []) {
      if (state === null) continue
      lines[state.state].lines++
      lines[state.state].parked += state.count
    }
  }
  return lines
}

/** Of the deliverers' table, which all of them have: take the largest, not the sum. */
function subscriptionsByStatus(pipeline: Pipeline): Record<string, number> {
  const counts = { active: 0, paused: 0, disabled: 0 }
  for (const { status } of pipeline.subscriptions.all()) counts[status]++
  return counts
}

function subscriptionsOf(pipeline: Pipeline, lanes: readonly LaneRunner[], nowMs: number): SubscriptionVitals[] {
  const found = new Map<string, { subscriptionId: string; oldestReadyAgeMs: number; failures: number }>()
  const of = (subscriptionId: string) => {
    let entry = found.get(subscriptionId)
    if (entry === undefined) {
      entry = { subscriptionId, oldestReadyAgeMs: 0, failures: 0 }
      found.set(subscriptionId, entry)
    }
    return entry
  }
  for (const { subscriptionId, readyAtMs } of pipeline.executor.waiting()) {
    const entry = of(subscriptionId)
    entry.oldestReadyAgeMs = Math.max(entry.oldestReadyAgeMs, nowMs - readyAtMs)
  }
  // Of one that is spread over lanes, each lane counts for itself.
  for (const { lane } of lanes)
    for (const mark of lane?.failing ?? []) of(mark.subscriptionId).failures += mark.failures
  return [...found.values()]
}

function tiersOf(pipeline: Pipeline, lanes: readonly LaneRunner[]): Vitals['tiers'] {
  return pipeline.ladder.tiers.map(({ name }, index) => {
    let held = 0
    let lowestDueMs: number | null = null
    let promoted = 0
    for (const runner of lanes) {
      promoted += (runner.promotedBefore.get(name) ?? 0) + (runner.lane?.tiers.promoted.get(name) ?? 0)
      const tier = runner.lane?.tiers.held(index)
      if (tier === undefined) continue
      held += tier.held
      if (tier.lowestDueMs !== null) lowestDueMs = Math.min(lowestDueMs ?? tier.lowestDueMs, tier.lowestDueMs)
    }
    return { tier: name, held, lowestDueMs, promoted }
  })
}

/**
 * Records behind the committed positions, per group and topic, of the roles of this process; and, found along with it, where
 * `deliveries` ends.
 */
export async function readLag(
  settings: PipelineSettings,
  kafka: Kafka,
  reader: LogReader,
): Promise<{ readonly lag: Lag[]; readonly deliveries: DeliveriesEnds }> {
  const { groups, topics, roles } = settings
  const wanted = [
    ...(roles.router ? topics.events.map((topic) => ({ group: groups.router, topic })) : []),
    ...(roles.deliverer ? sourceTopics(topics).map((topic) => ({ group: groups.deliverer, topic })) : []),
  ]
  let deliveries: DeliveriesEnds = null
  // A few at a time: what an operator watches must not crowd out the lanes' own requests.
  const limit = pLimit(2)
  const lag = await Promise.all(
    wanted.map(({ group, topic }) =>
      limit(async () => {
        const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
        if (topic === topics.deliveries) deliveries = ends
        const partitions = [...ends.keys()].map((partition) => ({ topic, partition }))
        const committed = await kafka.offsets.committed(group, partitions)
        let records = 0
        for (const { partition, offset } of committed) {
          records += Math.max(0, (ends.get(partition) ?? 0) - (offset ?? starts.get(partition) ?? 0))
        }
        return { group, topic, records }
      }),
    ),
  )
  return { lag, deliveries }
}
