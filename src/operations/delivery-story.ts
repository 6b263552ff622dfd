import type { Config } from '../config.ts'
import type { Attempt } from '../core/attempt.ts'
import { type Delivery, deadHeader, decodeDelivery, deliveryHeader, lineHeader } from '../core/delivery.ts'
import { OffsetTracker } from '../core/offset-tracker.ts'
import { partitionOf } from '../core/partition.ts'
import type { InRecord } from '../core/record.ts'
import type { Kafka, LogReader } from '../ports.ts'
import { decodeAttempt } from '../schema/decode.ts'
import { doneAbove, readLines, type StandingLine } from './line-read.ts'
import { groupNames, topicNames } from './names.ts'
import type { Progress } from './progress.ts'
import { partitionsOf, readTopic } from './read-topic.ts'

export type PlaceKind = 'deliveries' | 'tier' | 'parked' | 'dead'

/** One record of the delivery. `done`: it went on from there; never so in `dead`. */
export interface StoryPlace {
  readonly kind: PlaceKind
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  readonly attempts: number
  readonly dueMs: number | null
  readonly lastError: string | null
  readonly line: string | null
  readonly reason: string | null
  readonly done: boolean
}

export type DeliveryState = 'queued' | 'scheduled' | 'parked' | 'dead' | 'delivered' | 'cancelled' | 'unknown'

export interface Story {
  /** Null: only its attempts are left. */
  readonly delivery: Delivery | null
  readonly attempts: readonly Attempt[]
  /** In the order of the topics, each in log order. */
  readonly places: readonly StoryPlace[]
  readonly state: DeliveryState
  /** Where it waits, or lies dead; null when it is final otherwise. */
  readonly place: StoryPlace | null
  /** Records looked at. */
  readonly scanned: number
}

/** Everything the log holds of one delivery: all of a lane is read, or, when the subscription is not known, all lanes. */
export async function readStory(
  kafka: Kafka,
  reader: LogReader,
  config: Config,
  query: { readonly id: string; readonly subscription?: string | undefined; readonly spread: boolean },
  progress: Progress,
): Promise<Story | null> {
  const names = topicNames(config)
  const id = Buffer.from(query.id)
  const lanes = await partitionsOf(kafka, names.deliveries)
  const only = query.subscription === undefined || query.spread ? undefined : partitionOf(query.subscription, lanes)
  const partitions = only === undefined ? Array.from({ length: lanes }, (_, i) => i) : [only]
  const lines = await readLines(kafka, reader, config)
  const places: StoryPlace[] = []
  const attempts: Attempt[] = []
  let delivery: Delivery | null = null
  let scanned = 0
  const scan = async (topic: string, take: (partition: number, record: InRecord) => void) => {
    for await (const { partition, record } of readTopic(reader, topic, { partitions })) {
      if (++scanned % 500 === 0) progress.update(`${scanned} records looked at, now ${topic}/${partition}`)
      take(partition, record)
    }
  }
  const sources: readonly (readonly [PlaceKind, string])[] = [
    ['deliveries', names.deliveries],
    ...names.tiers.map(({ topic }) => ['tier', topic] as const),
    ['parked', names.parked],
    ['dead', names.dead],
  ]
  for (const [kind, topic] of sources) {
    const found: { partition: number; record: InRecord; delivery: Delivery }[] = []
    await scan(topic, (partition, record) => {
      if (record.headers[deliveryHeader.id]?.equals(id) !== true) return
      const decoded = decodeDelivery(record)
      if (decoded.ok) found.push({ partition, record, delivery: decoded.value })
    })
    if (found.length === 0) continue
    // Asked for after the records were read: what moved on meanwhile is done, and stands further on.
    const isDone = await doneIn(kafka, config, kind, topic, partitions, lines)
    for (const { partition, record, delivery: one } of found) {
      delivery = one
      const { offset, timestampMs } = record
      places.push({
        kind,
        topic,
        partition,
        offset,
        timestampMs,
        attempts: one.attempts,
        dueMs: one.dueMs,
        lastError: one.lastError,
        line: record.headers[lineHeader]?.toString() ?? null,
        reason: record.headers[deadHeader.reason]?.toString() ?? null,
        done: isDone(partition, record),
      })
    }
  }
  await scan(names.attempts, (_, record) => {
    if (record.value?.includes(id) !== true) return
    const decoded = decodeAttempt(record)
    if (decoded.ok && decoded.value.deliveryId === query.id) attempts.push(decoded.value)
  })
  if (delivery === null && attempts.length === 0) return null
  return { delivery, attempts, places, ...whereNow(attempts, places), scanned }
}

/** Where it is now. Pure: the last record that is not done says, else the last settlement. */
export function whereNow(
  attempts: readonly Attempt[],
  places: readonly StoryPlace[],
): { readonly state: DeliveryState; readonly place: StoryPlace | null } {
  const waiting = places.findLast(({ kind, done }) => kind !== 'dead' && !done)
  if (waiting !== undefined) {
    const state = { deliveries: 'queued', tier: 'scheduled', parked: 'parked', dead: 'dead' } as const
    return { state: state[waiting.kind], place: waiting }
  }
  const last = attempts.at(-1)
  if (last?.settlement === 'done') return { state: 'delivered', place: null }
  if (last?.settlement === 'cancelled') return { state: 'cancelled', place: null }
  const dead = places.findLast(({ kind }) => kind === 'dead')
  return dead === undefined ? { state: 'unknown', place: null } : { state: 'dead', place: dead }
}

async function doneIn(
  kafka: Kafka,
  config: Config,
  kind: PlaceKind,
  topic: string,
  partitions: readonly number[],
  lines: readonly StandingLine[],
): Promise<(partition: number, record: InRecord) => boolean> {
  if (kind === 'dead') return () => false
  if (kind === 'parked') {
    // A parked record is done when its line is open again, or has come past it.
    return (partition, record) => {
      const key = record.headers[lineHeader]?.toString()
      const line = lines.find(({ lane, state }) => lane === partition && state.line === key)
      if (line === undefined || line.state.count === 0) return true
      return record.offset < line.state.next || doneAbove(line.state).has(record.offset)
    }
  }
  const at = partitions.map((partition) => ({ topic, partition }))
  const trackers = new Map<number, OffsetTracker>()
  for (const { partition, offset, metadata } of await kafka.offsets.committed(groupNames(config).deliverer, at)) {
    if (offset !== null) trackers.set(partition, OffsetTracker.restore(offset, metadata).tracker)
  }
  return (partition, record) => trackers.get(partition)?.isDone(record.offset) ?? false
}
