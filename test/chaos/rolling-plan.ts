import { partitionOf } from '../../src/core/partition.ts'
import { slow } from '../sim/endpoints.ts'
import { between, pick, randomStream } from '../sim/random.ts'
import type { PlannedEvent, PlannedSubscription } from './plan.ts'
import { lanes } from './setting.ts'

const perLane = 2

/** Two subscriptions per lane, one of them ordered by key, all with POSTs of 20 to 200 ms; each has its own event type. */
export function rollingSubscriptions(): readonly PlannedSubscription[] {
  return Array.from({ length: lanes }, (_, lane) => lane).flatMap((lane) => {
    const ids: string[] = []
    for (let n = 0; ids.length < perLane; n++) if (partitionOf(`r${n}`, lanes) === lane) ids.push(`r${n}`)
    return ids.map((id, i) => ({
      id,
      ordering: i === 0 ? ('key' as const) : ('none' as const),
      types: [`to.${id}`],
      endpoint: slow(20, 200),
      about: `lane ${lane}, ${i === 0 ? 'by key' : 'unordered'}, 20–200 ms`,
    }))
  })
}

export function rollingEvents(seed: number, count: number): PlannedEvent[] {
  const random = randomStream(seed, 'rolling')
  const subscriptions = rollingSubscriptions()
  return Array.from({ length: count }, (_, i) => ({
    type: subscriptions[i % subscriptions.length]?.types[0] ?? '',
    key: `k${pick(random, [...Array(60).keys()])}`,
    bytes: between(random, 100, 1_000),
  }))
}
