import type { Config } from '../config.ts'
import type { Control } from '../core/control.ts'
import { HooktideError } from '../core/error.ts'
import { readBacklog } from './backlog.ts'
import { inForce } from './control-store.ts'
import { groupNames } from './names.ts'
import type { OperationParts } from './parts.ts'
import { partitionsOf } from './read-topic.ts'

export interface TierFound {
  readonly tier: string
  readonly delayMs: number
  readonly state: 'running' | 'paused' | 'throttled'
  readonly perSecond: number | null
  readonly order: Control | null
  readonly waiting: number
  readonly exact: boolean
  /** When the first of them is ripe (append time + delay); null: none waits. */
  readonly lowestDueMs: number | null
}

/** Orders name tiers as the configuration does; the topic's whole name will do too. */
export function tierName(config: Config, name: string): string {
  const { prefix, tiers } = config.topics
  const known = tiers.find((tier) => tier.name === name || prefix + tier.name === name)
  if (known !== undefined) return known.name
  throw new HooktideError('not-found', `there is no tier ${name.slice(0, 100)}`, {
    remedy: `Give one of ${tiers.map((tier) => tier.name).join(', ')} (topics.tiers).`,
  })
}

export async function readTiers({ kafka, config, clock, control }: OperationParts): Promise<readonly TierFound[]> {
  const nowMs = clock.now()
  const orders = await control.read()
  const reader = kafka.reader()
  try {
    return await Promise.all(
      config.topics.tiers.map(async ({ name, delayMs }) => {
        const topic = config.topics.prefix + name
        await partitionsOf(kafka, topic)
        const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
        const at = [...ends.keys()].map((partition) => ({ topic, partition }))
        const committed = await kafka.offsets.committed(groupNames(config).deliverer, at)
        const backlogs = await Promise.all(
          committed.map((c) => readBacklog(reader, c, starts.get(c.partition) ?? 0, ends.get(c.partition) ?? 0)),
        )
        const given = orders.get(`tier:${name}`)?.order ?? null
        const order = given !== null && inForce(given, nowMs) ? given : null
        const due = backlogs.flatMap(({ oldest }) => (oldest === null ? [] : [oldest.timestampMs + delayMs]))
        return {
          tier: name,
          delayMs,
          state: order === null ? 'running' : order.order === 'pause' ? 'paused' : 'throttled',
          perSecond: order?.perSecond ?? null,
          order,
          waiting: backlogs.reduce((sum, { depth }) => sum + depth, 0),
          exact: backlogs.every(({ exact }) => exact),
          lowestDueMs: due.length === 0 ? null : Math.min(...due),
        } as const
      }),
    )
  } finally {
    await reader.close()
  }
}
