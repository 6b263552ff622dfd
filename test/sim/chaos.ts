import type { MemoryBroker } from './memory-broker.ts'
import { between, pick } from './random.ts'

/**
 * The faults that come with time instead of with a call: moved leaders and coordinators, stalls, lost memberships, clock
 * jumps, compaction, retention. Returns what ends them, together with the random faults of calls: afterwards the world is
 * well, and everything must come to its end.
 */
export function unleash(
  broker: MemoryBroker,
  /** Processes that are left alone, and topics that retention never takes from. */
  spare: { readonly processes?: readonly string[]; readonly topics?: readonly string[] } = {},
): () => void {
  const { clock, dice } = broker
  const { faults } = dice
  const cancels = new Map<string, () => void>()
  const every = (name: string, meanMs: number, strike: () => void) => {
    if (meanMs <= 0) return
    const again = () => {
      const inMs = -Math.log(1 - dice.stream(`${name} when`)()) * meanMs
      cancels.set(
        name,
        clock.after(inMs, () => {
          strike()
          again()
        }),
      )
    }
    again()
  }
  const random = (name: string) => dice.stream(name)
  const anyProcess = (name: string) => {
    const alive = broker.processes().filter(({ id }) => spare.processes?.includes(id) !== true)
    return alive.length === 0 ? null : pick(random(name), alive)
  }

  every('leader', faults.leaderMoveEveryMs, () => {
    const log = pick(random('leader'), broker.logs(pick(random('leader'), broker.topics())))
    broker.moveLeader(log.topic, log.partition, between(random('leader'), 10, 3_000))
  })
  every('coordinator', faults.coordinatorMoveEveryMs, () => {
    broker.moveCoordinator(between(random('coordinator'), 10, 3_000))
  })
  every('stall', faults.stallEveryMs, () => {
    const process = anyProcess('stall')
    if (process !== null) broker.stall(process.id, between(random('stall'), 100, 25_000))
  })
  every('expire', faults.expireEveryMs, () => {
    const process = anyProcess('expire')
    if (process !== null) broker.expire(process.id)
  })
  every('jump', faults.clockJumpEveryMs, () => {
    const process = anyProcess('jump')
    if (process === null) return
    broker.note('jump', process.id)
    process.jump(between(random('jump'), -20_000, 20_000) - Math.round(process.skewMs / 2))
  })
  every('compact', faults.compactEveryMs, () => {
    for (const topic of broker.topics()) if (broker.topicOptions(topic).compacted === true) broker.compact(topic)
  })
  every('retention', faults.retentionEveryMs, () => {
    // A compacted topic has no retention.
    const lasts = (topic: string) => broker.topicOptions(topic).compacted === true || spare.topics?.includes(topic)
    const topics = broker.topics().filter((topic) => !lasts(topic))
    const log = pick(random('retention'), broker.logs(pick(random('retention'), topics)))
    broker.truncate(log.topic, log.partition, between(random('retention'), log.start, log.end))
  })

  return () => {
    for (const cancel of cancels.values()) cancel()
    cancels.clear()
    dice.quiet()
  }
}
