import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import type { Objects } from '../ports/objects.ts'
import type { TopicAdmin } from '../ports.ts'
import { topicNames } from './names.ts'

export interface ObjectAge {
  readonly ms: number
  /** Whose retention it follows from, for people. */
  readonly because: string
}

/**
 * How old a stored body must be for no record of ours to point to it by its own age: a dead letter is written when its delivery
 * ends, which may have stood in the other topics for as long as they keep anything. Null: a topic keeps its records for ever.
 */
export async function leastObjectAge(admin: TopicAdmin, config: Config): Promise<ObjectAge | null> {
  const { events, deliveries, tiers, parked, dead } = topicNames(config)
  const before = [...events, deliveries, ...tiers.map(({ topic }) => topic), parked]
  const states = await admin.describe([...before, dead])
  const keptMs = (topic: string): number => {
    const { configs } = states.get(topic) ?? { configs: new Map<string, { value: string | null }>() }
    const number = (name: string) => Number(configs.get(name)?.value ?? Number.NaN)
    // A segment goes as a whole, when the youngest record in it is old enough.
    const ms = number('retention.ms') + number('segment.ms')
    if (states.has(topic) && Number.isFinite(ms) && number('retention.ms') >= 0) return ms
    return Number.POSITIVE_INFINITY
  }
  const longest = before.reduce((a, b) => (keptMs(b) > keptMs(a) ? b : a))
  const ms = keptMs(longest) + keptMs(dead)
  return Number.isFinite(ms) ? { ms, because: `${longest}, then ${dead}` } : null
}

export interface Cleaned {
  readonly olderThanMs: number
  readonly beforeDay: string
  /** Removed, or what would be. */
  readonly days: readonly string[]
  /** Null: as long as the topics keep records, or longer; else what could still point to what was removed. */
  readonly warning: string | null
}

/** Removes days of stored bodies. `olderThanMs` null: what no record can point to any more. */
export async function cleanObjects(
  parts: { readonly admin: TopicAdmin; readonly config: Config; readonly objects: Objects; readonly nowMs: number },
  options: { readonly olderThanMs: number | null; readonly dryRun: boolean },
): Promise<Cleaned> {
  const least = await leastObjectAge(parts.admin, parts.config)
  const olderThanMs = options.olderThanMs ?? least?.ms
  if (olderThanMs === undefined) {
    throw new HooktideError('usage', 'a topic keeps its records for ever, so no body is ever too old', {
      remedy: 'Give --older-than, e.g. --older-than 120d.',
    })
  }
  const beforeMs = parts.nowMs - olderThanMs
  const days = await parts.objects.removeBefore(beforeMs, options.dryRun)
  const safe = least !== null && olderThanMs >= least.ms
  const warning = safe ? null : `records may point to younger ones (${least?.because ?? 'a topic keeps them for ever'})`
  return { olderThanMs, beforeDay: new Date(beforeMs).toISOString().slice(0, 10), days, warning }
}
