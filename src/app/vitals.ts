import pLimit from 'p-limit'
import type { Lag, Vitals } from '../core/vitals.ts'
import type { Pipeline, PipelineSettings } from '../pipeline/assemble.ts'
import { sourceTopics } from '../pipeline/lane-topics.ts'
import type { Clock, Kafka, LogReader } from '../ports.ts'

/** The pipeline's vital signs at this moment. Quick: it only adds up what is in memory. */
export function readVitals(pipeline: Pipeline, clock: Clock): Partial<Vitals> {
  const lanes = [...(pipeline.deliverer?.lanes ?? [])]
  const oldest = pipeline.executor.oldestReadyMs()
  const paused: Record<string, number> = {}
  for (const runner of lanes) {
    for (const { reason } of runner.lane?.flow.pauses() ?? []) paused[reason] = (paused[reason] ?? 0) + 1
  }
  for (const stream of pipeline.router?.streams ?? []) if (stream.paused) paused.router = (paused.router ?? 0) + 1
  return {
    readyDepth: pipeline.executor.ready,
    oldestReadyAgeMs: oldest === null ? null : Math.max(0, clock.now() - oldest),
    inFlight: { count: pipeline.executor.inFlight, bytes: pipeline.executor.inFlightBytes },
    clockOffsetMs: pipeline.clockOffset.estimateMs,
    paused,
    lanes: lanes.map((runner) => ({ lane: runner.partition, state: runner.status })),
    tiers: pipeline.ladder.tiers.map(({ name }, index) => {
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
    }),
  }
}

/** Records behind the committed positions, per group and topic, of the roles of this process. */
export async function readLag(settings: PipelineSettings, kafka: Kafka, reader: LogReader): Promise<Lag[]> {
  const { groups, topics, roles } = settings
  const wanted = [
    ...(roles.router ? topics.events.map((topic) => ({ group: groups.router, topic })) : []),
    ...(roles.deliverer ? sourceTopics(topics).map((topic) => ({ group: groups.deliverer, topic })) : []),
  ]
  // A few at a time: what an operator watches must not crowd out the lanes' own requests.
  const limit = pLimit(2)
  return Promise.all(
    wanted.map(({ group, topic }) =>
      limit(async () => {
        const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
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
}
