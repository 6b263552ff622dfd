import type { Config } from '../config.ts'
import { controlKey } from '../core/control.ts'
import { endpointRefs } from '../core/endpoint-settings.ts'
import { HooktideError } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import { emptyHeaders, type OutRecord } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Objects } from '../ports/objects.ts'
import type { Clock } from '../ports.ts'
import type { Cluster } from './cluster.ts'
import { ControlStore } from './control-store.ts'
import { type ErasedObjects, erasedObjects } from './erased-objects.ts'
import { topicNames } from './names.ts'
import { leastObjectAge } from './objects-clean.ts'
import type { Progress } from './progress.ts'
import { confirmWritten, partitionsOf } from './read-topic.ts'
import type { StateErased, StateTools } from './state-tools.ts'
import { SubscriptionStore } from './subscription-store.ts'

export interface ErasePlan {
  readonly what: StateErased
  readonly subscriptions: readonly string[]
  /** Sealed secrets that no other subscription uses. */
  readonly secrets: readonly string[]
  /** Keys in `control`. */
  readonly orders: readonly string[]
  /** Deliveries in the state; null: there is no state. */
  readonly deliveries: number | null
  /** Stored bodies; null: there is no object store here. */
  readonly objects: ErasedObjects | null
  readonly remains: readonly Remainder[]
}

/** What stays in a topic, as nothing can be taken out of the middle of a log, or in the object store (`topic`: `objects`). */
export interface Remainder {
  readonly topic: string
  /** When the last of it is gone at the latest (epoch ms); null: the topic keeps records for ever. */
  readonly goneByMs: number | null
  readonly how: 'retention' | 'compaction' | 'objects clean'
}

interface EraseParts {
  readonly cluster: Cluster
  readonly config: Config
  readonly clock: Clock
  readonly state: StateTools
  /** Null: none is configured. */
  readonly objects: Objects | null
  readonly progress: Progress
}

/** What `eraseAll` would do. Writes nothing. */
export async function planErase(parts: EraseParts, what: StateErased): Promise<ErasePlan> {
  const { cluster, config, clock, state } = parts
  const names = topicNames(config)
  const table = await new SubscriptionStore(cluster.kafka, names.subscriptions, clock).read()
  const all = [...table.values()].flatMap((entry) => (entry.ok ? [entry.value] : []))
  const mine = all.filter(({ id, tenant }) => (what.by === 'subscription' ? id === what.id : tenant === what.id))
  const subscriptions = what.by === 'event' ? [] : mine.map(({ id }) => id)
  if (what.by === 'subscription' && table.has(what.id) && subscriptions.length === 0) subscriptions.push(what.id)
  const gone = new Set(subscriptions)
  const kept = new Set(all.filter(({ id }) => !gone.has(id)).flatMap(sealedOf))
  const secrets = [...new Set(all.filter(({ id }) => gone.has(id)).flatMap(sealedOf))].filter((id) => !kept.has(id))
  const deliveries = await state.erase(what, true).catch(withoutState)
  return {
    what,
    subscriptions,
    secrets,
    orders: await ordersOf(parts, what, gone, deliveries !== null),
    deliveries,
    objects: await storedBodies(parts, what),
    remains: [...(await remainders(parts)), ...(await objectRemainder(parts))],
  }
}

async function storedBodies({ cluster, config, objects, progress }: EraseParts, what: StateErased) {
  if (objects === null) return null
  const reader = cluster.kafka.reader()
  try {
    return await erasedObjects({ reader, config, progress }, what)
  } finally {
    await reader.close()
  }
}

/** Bodies that others point to, and those of a subscription's events, go with their day. */
async function objectRemainder({ cluster, config, clock, objects }: EraseParts): Promise<Remainder[]> {
  if (objects === null) return []
  const age = await leastObjectAge(cluster.admin, config)
  return [{ topic: 'objects', goneByMs: age === null ? null : clock.now() + age.ms, how: 'objects clean' }]
}

/**
 * Tombstones in the tables, rows in the state, objects behind claim checks; in this order, so that what is cut short can be run
 * again and finds what is left. What stands in topics that are not compacted stays until their retention takes it.
 */
export async function eraseAll(
  parts: EraseParts,
  plan: ErasePlan,
): Promise<{ readonly deliveries: number | null; readonly objects: number | null }> {
  const { cluster, config, clock, state } = parts
  const names = topicNames(config)
  // First what is removed, then who it belongs to: run again, it is found by that.
  const removed = await removeObjects(parts, plan)
  await tombstones(parts, names.secrets, plan.secrets)
  if (plan.orders.length > 0) await new ControlStore(cluster.kafka, names.control, clock).clear(plan.orders)
  const store = new SubscriptionStore(cluster.kafka, names.subscriptions, clock)
  await store.read()
  await store.write(plan.subscriptions.map((id) => ({ id, subscription: null })))
  return { deliveries: await state.erase(plan.what, false).catch(withoutState), objects: removed }
}

async function removeObjects({ objects, progress }: EraseParts, plan: ErasePlan): Promise<number | null> {
  if (objects === null || plan.objects === null) return null
  let removed = 0
  for (const key of plan.objects.remove) {
    if (await objects.remove(key)) removed++
    progress.update(`${removed} stored bodies removed`)
  }
  progress.end()
  return removed
}

function sealedOf(subscription: Subscription): string[] {
  const refs = [...subscription.secrets.map(({ ref }) => ref), ...endpointRefs(subscription)]
  return refs.flatMap((ref) => (ref.startsWith('kafka:') ? [ref.slice('kafka:'.length)] : []))
}

async function ordersOf(
  { cluster, config, clock, state }: EraseParts,
  what: StateErased,
  gone: ReadonlySet<string>,
  hasState: boolean,
): Promise<string[]> {
  const orders = await new ControlStore(cluster.kafka, topicNames(config).control, clock).read()
  const deliveries = hasState ? await deliveryIds(state, what) : new Set<string>()
  return [...orders.values()].flatMap(({ key, order }) => {
    if (order === null) return []
    const { kind, target } = order
    const mine =
      (kind === 'subscription' && gone.has(target)) ||
      (kind === 'line' && gone.has(target.slice(0, target.indexOf(' ')))) ||
      (kind === 'delivery' && deliveries.has(target))
    return mine ? [key || controlKey(order)] : []
  })
}

async function deliveryIds({ store }: StateTools, { by, id }: StateErased): Promise<Set<string>> {
  const query = by === 'event' ? { eventId: id } : by === 'tenant' ? { tenant: id } : { subscriptionId: id }
  const ids = new Set<string>()
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof store.deliveries>> = await store.deliveries(query, { limit: 1000, cursor })
    for (const delivery of page.items) ids.add(delivery.id)
    cursor = page.nextCursor
  } while (cursor !== null)
  return ids
}

async function remainders({ cluster, config, clock }: EraseParts): Promise<Remainder[]> {
  const names = topicNames(config)
  const { events, deliveries, tiers, parked, dead, attempts, rejected, subscriptions, secrets, control } = names
  const logs = [...events, deliveries, ...tiers.map(({ topic }) => topic), parked, dead, attempts, rejected]
  const states = await cluster.admin.describe([...logs, subscriptions, secrets, control])
  return [...states].map(([topic, { configs }]) => {
    const number = (name: string) => Number(configs.get(name)?.value ?? Number.NaN)
    const compacted = (configs.get('cleanup.policy')?.value ?? '').includes('compact')
    // A segment goes as a whole, when the youngest record in it is old enough.
    const keptMs = compacted
      ? number('max.compaction.lag.ms')
      : number('retention.ms') < 0
        ? Number.NaN
        : number('retention.ms') + number('segment.ms')
    const known = Number.isFinite(keptMs) && keptMs < 100 * 365 * 86_400_000
    return { topic, goneByMs: known ? clock.now() + keptMs : null, how: compacted ? 'compaction' : 'retention' }
  })
}

async function tombstones({ cluster, clock }: EraseParts, topic: string, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  const count = await partitionsOf(cluster.kafka, topic)
  const records = keys.map((key): OutRecord => {
    return { topic, partition: partitionOf(key, count), key, value: null, headers: emptyHeaders }
  })
  const producer = cluster.kafka.producer()
  const reader = cluster.kafka.reader()
  try {
    const ends = await reader.ends(topic)
    await confirmWritten(reader, clock, records, await producer.send(records), ends)
  } finally {
    await Promise.all([producer.close(), reader.close()])
  }
}

function withoutState(error: unknown): null {
  if (error instanceof HooktideError && error.code === 'state.unavailable') return null
  throw error
}
