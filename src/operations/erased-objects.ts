import type { Config } from '../config.ts'
import { decodeDelivery } from '../core/delivery.ts'
import { parseEvent } from '../core/event-format.ts'
import type { LogReader } from '../ports.ts'
import { topicNames } from './names.ts'
import type { Progress } from './progress.ts'
import { readTopic } from './read-topic.ts'
import type { StateErased } from './state-tools.ts'

export interface ErasedObjects {
  /** Keys that only records of what is erased point to. */
  readonly remove: readonly string[]
  /** How many others point to as well: these stay. */
  readonly shared: number
}

interface Pointer {
  readonly key: string
  readonly eventId: string
  readonly tenant: string
}

/**
 * Stored bodies of an event or of a tenant's events, by every record that still points to one: the same body produced twice on a day
 * is one object. A subscription has none of its own: a body is its event's, and others get it too.
 */
export async function erasedObjects(
  parts: { readonly reader: LogReader; readonly config: Config; readonly progress: Progress },
  { by, id }: StateErased,
): Promise<ErasedObjects> {
  if (by === 'subscription') return { remove: [], shared: 0 }
  const mine = new Set<string>()
  const others = new Set<string>()
  for await (const { key, eventId, tenant } of pointers(parts)) {
    const isMine = by === 'event' ? eventId === id : tenant === id
    if (isMine) mine.add(key)
    else others.add(key)
  }
  const remove = [...mine].filter((key) => !others.has(key)).sort()
  return { remove, shared: mine.size - remove.length }
}

async function* pointers(parts: Parameters<typeof erasedObjects>[0]): AsyncGenerator<Pointer> {
  const { reader, config, progress } = parts
  const { events, deliveries, tiers, parked, dead } = topicNames(config)
  const { maxHeaders } = config.router
  // As it was when the event was taken: a bound that was lowered since must hide nothing.
  const limits = { maxBytes: Number.MAX_SAFE_INTEGER, maxHeaders, maxClaimBytes: Number.MAX_SAFE_INTEGER }
  let seen = 0
  const note = (topic: string) => {
    if (++seen % 1_000 === 0) progress.update(`looking for stored bodies: ${seen} records, now in ${topic}`)
  }
  for (const topic of events) {
    for await (const { partition, record } of readTopic(reader, topic)) {
      note(topic)
      const event = parseEvent(record, { topic, partition }, limits)
      if (!event.ok || event.value.claim === undefined) continue
      const { claim, id: eventId, tenant } = event.value
      yield { key: claim.key, eventId, tenant }
    }
  }
  for (const topic of [deliveries, ...tiers.map(({ topic }) => topic), parked, dead]) {
    for await (const { record } of readTopic(reader, topic)) {
      note(topic)
      const delivery = decodeDelivery(record)
      if (!delivery.ok || delivery.value.claim === undefined) continue
      const { claim, eventId, tenant } = delivery.value
      yield { key: claim.key, eventId, tenant }
    }
  }
  progress.end()
}
