import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import type { StatusCounts } from '../core/state-view.ts'
import type { Kafka, StateStore } from '../ports.ts'
import { topicNames } from './names.ts'

export interface StateStatus {
  /** Records that the log holds and the state does not, and in how many partitions. */
  readonly behind: number
  readonly partitions: number
  readonly counts: StatusCounts
}

/** How far the delivery state follows the log, and what it holds; of one tenant only, where there is one. */
export async function readStateStatus(
  { kafka, config, state }: { readonly kafka: Kafka; readonly config: Config; readonly state: StateStore | null },
  tenant: string | null,
): Promise<StateStatus> {
  if (state === null) {
    throw new HooktideError('state.unavailable', 'this process keeps no delivery state', {
      remedy: 'Set state.enabled, and run a projector.',
    })
  }
  const [positions, counts] = await Promise.all([state.positions(), state.counts(tenant === null ? {} : { tenant })])
  return { ...(await lag(kafka, config, positions)), counts }
}

type Positions = Awaited<ReturnType<StateStore['positions']>>

async function lag(kafka: Kafka, config: Config, positions: Positions) {
  const at = new Map(positions.map(({ topic, partition, folded }) => [`${topic}/${partition}`, folded]))
  const { deliveries, tiers, parked, dead, attempts, control } = topicNames(config)
  const reader = kafka.reader()
  try {
    let [behind, partitions] = [0, 0]
    for (const topic of [deliveries, ...tiers.map((tier) => tier.topic), parked, dead, attempts, control]) {
      const starts = await reader.starts(topic)
      for (const [partition, end] of await reader.ends(topic)) {
        const left = end - Math.max(at.get(`${topic}/${partition}`) ?? 0, starts.get(partition) ?? 0)
        if (left <= 0) continue
        behind += left
        partitions++
      }
    }
    return { behind, partitions }
  } finally {
    await reader.close()
  }
}
