import type { Config } from '../config.ts'
import type { Attempt } from '../core/attempt.ts'
import { type Delivery, deadHeader, decodeDelivery } from '../core/delivery.ts'
import { HooktideError } from '../core/error.ts'
import { OffsetTracker } from '../core/offset-tracker.ts'
import type { InRecord } from '../core/record.ts'
import { rejectedHeader } from '../core/rejected.ts'
import type { Result } from '../core/result.ts'
import { groupNames, topicNames } from '../operations/names.ts'
import { readLatest, readTopic } from '../operations/read-topic.ts'
import type { Kafka, LogReader } from '../ports.ts'
import { decodeAttempt, decodeSubscription } from '../schema/decode.ts'
import { type Part, pathOf } from './cast.ts'
import type { DeadSeen, DeliverySeen, EventSeen, Evidence, SubscriptionSeen, TierMove } from './evidence.ts'
import { digestOf } from './journal.ts'

type FromKafka = Omit<Evidence, 'produced' | 'requests'>

/** Reads every log of the run to its end. The service must have stopped. */
export async function readEvidence(kafka: Kafka, config: Config, cast: readonly Part[]): Promise<FromKafka> {
  const topics = topicNames(config)
  const reader = kafka.reader()
  const done = (topic: string) => readDone(reader, kafka, topic, groupNames(config).deliverer)
  try {
    const dead: DeadSeen[] = []
    for await (const { record } of readTopic(reader, topics.dead)) {
      const { id, subscriptionId, attempts } = deliveryOf(record, topics.dead)
      const reason = record.headers[deadHeader.reason]?.toString() ?? ''
      dead.push({ deliveryId: id, subscriptionId, reason, attempts })
    }
    const parked = new Set<string>()
    for await (const { record } of readTopic(reader, topics.parked)) parked.add(deliveryOf(record, topics.parked).id)
    const rejected: string[] = []
    for await (const { record } of readTopic(reader, topics.rejected)) {
      rejected.push(record.headers[rejectedHeader.reason]?.toString() ?? 'no reason')
    }
    return {
      maxAttempts: config.retry.maxAttempts,
      events: await readEvents(reader, topics.events[0] as string),
      subscriptions: await readSubscriptions(reader, topics.subscriptions, cast),
      deliveries: await readDeliveries(done, reader, topics.deliveries),
      attempts: await readAttempts(reader, topics.attempts),
      tierMoves: await readTiers(done, reader, topics.tiers, config.topics.prefix),
      dead,
      parked,
      rejected,
    }
  } finally {
    await reader.close()
  }
}

async function readEvents(reader: LogReader, topic: string): Promise<EventSeen[]> {
  const events: EventSeen[] = []
  for await (const { partition, record } of readTopic(reader, topic)) {
    events.push({
      id: record.headers['event-id']?.toString() ?? '',
      type: record.headers['event-type']?.toString() ?? '',
      key: record.key?.toString() ?? null,
      partition,
      offset: record.offset,
      timeMs: record.timestampMs,
      digest: digestOf(record.value ?? Buffer.alloc(0)),
    })
  }
  return events
}

async function readSubscriptions(reader: LogReader, topic: string, cast: readonly Part[]): Promise<SubscriptionSeen[]> {
  const latest = await readLatest(reader, topic)
  return cast.map((part): SubscriptionSeen => {
    const { id, types, ordering, expect } = part
    const record = latest.get(id)?.record
    const status = record === undefined ? 'missing' : decodedOf(decodeSubscription(record), topic).status
    return { id, types, ordered: ordering === 'key', path: pathOf(part), expect, status }
  })
}

type IsDone = (partition: number, offset: number) => boolean

/** What of a topic is done, by the offsets and bitmaps that the group has committed. */
async function readDone(reader: LogReader, kafka: Kafka, topic: string, group: string): Promise<IsDone> {
  const ends = await reader.ends(topic)
  const partitions = [...ends.keys()].map((partition) => ({ topic, partition }))
  const trackers = new Map<number, OffsetTracker>()
  for (const { partition, offset, metadata } of await kafka.offsets.committed(group, partitions)) {
    if (offset !== null) trackers.set(partition, OffsetTracker.restore(offset, metadata).tracker)
  }
  return (partition, offset) => trackers.get(partition)?.isDone(offset) ?? false
}

type ReadDone = (topic: string) => Promise<IsDone>

async function readDeliveries(readDone: ReadDone, reader: LogReader, topic: string): Promise<DeliverySeen[]> {
  const isDone = await readDone(topic)
  const deliveries: DeliverySeen[] = []
  for await (const { partition, record } of readTopic(reader, topic)) {
    const { id, subscriptionId, eventId } = deliveryOf(record, topic)
    deliveries.push({ id, subscriptionId, eventId, done: isDone(partition, record.offset) })
  }
  return deliveries
}

async function readAttempts(reader: LogReader, topic: string): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  for await (const { record } of readTopic(reader, topic)) attempts.push(decodedOf(decodeAttempt(record), topic))
  return attempts
}

async function readTiers(
  readDone: ReadDone,
  reader: LogReader,
  tiers: readonly { topic: string }[],
  prefix: string,
): Promise<TierMove[]> {
  const moves: TierMove[] = []
  for (const { topic } of tiers) {
    const tier = topic.slice(prefix.length)
    const isDone = await readDone(topic)
    for await (const { partition, record } of readTopic(reader, topic)) {
      const { id, attempts, dueMs } = deliveryOf(record, topic)
      moves.push({ tier, deliveryId: id, attempts, dueMs: dueMs ?? 0, done: isDone(partition, record.offset) })
    }
  }
  return moves
}

function deliveryOf(record: InRecord, topic: string): Delivery {
  return decodedOf(decodeDelivery(record), topic)
}

function decodedOf<T>(result: Result<T>, topic: string): T {
  if (result.ok) return result.value
  throw new HooktideError('check.failed', `a record of ${topic} can not be read: ${result.reason}`)
}
