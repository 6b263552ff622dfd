import type { Config } from '../config.ts'
import { type Delivery, decodeDelivery, lineHeader } from '../core/delivery.ts'
import { HooktideError } from '../core/error.ts'
import type { LineState } from '../core/lane-state.ts'
import { orderedBySubscription, overflowKeyOf, subscriptionOfLine } from '../core/line.ts'
import { OffsetTracker } from '../core/offset-tracker.ts'
import type { Kafka, LogReader } from '../ports.ts'
import { decodeLaneState } from '../schema/decode.ts'
import { groupNames, topicNames } from './names.ts'
import { partitionsOf, readLatest, readTopic } from './read-topic.ts'

/** A line that is not simply open, where it stands. */
export interface StandingLine {
  readonly lane: number
  readonly state: LineState
}

/** A delivery in a topic, not done. */
export interface DeliveryPlace {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  readonly delivery: Delivery
}

export async function readLines(kafka: Kafka, reader: LogReader, config: Config): Promise<StandingLine[]> {
  const topic = topicNames(config).laneState
  const count = await partitionsOf(kafka, topic)
  const lanes = Array.from({ length: count }, (_, lane) => lane)
  const perLane = await Promise.all(
    lanes.map(async (lane) => {
      // A key may stand in several lanes: the overflow of a subscription that is spread.
      const latest = await readLatest(reader, topic, { partitions: [lane] })
      return [...latest.values()].flatMap(({ record }): StandingLine[] => {
        const decoded = decodeLaneState(record)
        return decoded.ok && decoded.value.kind === 'line' ? [{ lane, state: decoded.value }] : []
      })
    }),
  )
  return perLane.flat()
}

export interface LineChoice {
  readonly line: readonly string[]
  readonly subscription?: string | undefined
  readonly key?: string | undefined
}

/** The key of the line that is meant: named whole, or by subscription and ordering key. */
export function chooseLine({ line, subscription, key }: LineChoice, standing: readonly StandingLine[]): string {
  if (line.length > 0) {
    const whole = line.join(' ')
    if (/^\S+ (?:k .+|s|o)$/s.test(whole)) return whole
    throw new HooktideError('usage', `"${whole.slice(0, 100)}" is no line`, {
      remedy: 'Give it as `hooktide lines list` shows it ("billing k order-7"), or --subscription with --key.',
    })
  }
  if (subscription === undefined) {
    throw new HooktideError('usage', 'no line was named', {
      remedy: 'Give it as `hooktide lines list` shows it, or --subscription with --key.',
    })
  }
  if (key !== undefined) return `${subscription} k ${key}`
  const found = [...new Set(standing.map(({ state }) => state.line))].filter(
    (name) => subscriptionOfLine(name) === subscription,
  )
  if (found.length === 1) return found[0] as string
  if (found.length === 0) {
    throw new HooktideError('not-found', `no line of ${subscription} stands`, {
      remedy: `Say which one you mean: --key, "${orderedBySubscription(subscription)}" or "${overflowKeyOf(subscription)}".`,
    })
  }
  throw new HooktideError('usage', `${found.length} lines of ${subscription} stand`, {
    details: found.slice(0, 20),
    remedy: 'Say which one with --key, or give the whole line.',
  })
}

/** The delivery the line stands behind: in a tier, or, of a stopped line, in `dead`. Null: not found (being attempted now). */
export async function readHead(
  kafka: Kafka,
  reader: LogReader,
  config: Config,
  { lane, state }: StandingLine,
): Promise<DeliveryPlace | null> {
  if (state.head === null) return null
  const names = topicNames(config)
  if (state.state === 'stopped') return lastOf(reader, names.dead, lane, state.head, null)
  const at = names.tiers.map(({ topic }) => ({ topic, partition: lane }))
  let latest: DeliveryPlace | null = null
  for (const { topic, offset, metadata } of await kafka.offsets.committed(groupNames(config).deliverer, at)) {
    const tracker = offset === null ? null : OffsetTracker.restore(offset, metadata).tracker
    const place = await lastOf(reader, topic, lane, state.head, tracker)
    if (place !== null && (latest === null || place.delivery.attempts >= latest.delivery.attempts)) latest = place
  }
  return latest
}

/** The first deliveries of the line that wait in `parked`, in order. */
export async function readParked(
  reader: LogReader,
  config: Config,
  { lane, state }: StandingLine,
  most: number,
): Promise<DeliveryPlace[]> {
  const places: DeliveryPlace[] = []
  if (state.count === 0 || most === 0) return places
  const topic = topicNames(config).parked
  const found = readTopic(reader, topic, { partitions: [lane], from: new Map([[lane, state.next]]) })
  const done = doneAbove(state)
  for await (const { partition, record } of found) {
    if (record.headers[lineHeader]?.toString() !== state.line || done.has(record.offset)) continue
    const decoded = decodeDelivery(record)
    if (!decoded.ok) continue
    const { offset, timestampMs } = record
    places.push({ topic, partition, offset, timestampMs, delivery: { ...decoded.value, body: Buffer.alloc(0) } })
    if (places.length >= Math.min(most, state.count)) break
  }
  return places
}

/** Parked offsets of an unordered line that are done above its `next`. */
export function doneAbove(state: LineState): ReadonlySet<number> {
  if (state.bitmap === undefined) return new Set()
  const parts = Buffer.from(state.bitmap, 'base64').toString().split(',')
  return new Set(parts.map((part) => state.next + Number(part)))
}

async function lastOf(
  reader: LogReader,
  topic: string,
  partition: number,
  id: string,
  tracker: OffsetTracker | null,
): Promise<DeliveryPlace | null> {
  let last: DeliveryPlace | null = null
  const from = tracker === null ? new Map<number, number>() : new Map([[partition, tracker.base]])
  for await (const { record } of readTopic(reader, topic, { partitions: [partition], from })) {
    if (tracker?.isDone(record.offset) === true) continue
    const decoded = decodeDelivery(record)
    if (!decoded.ok || decoded.value.id !== id) continue
    const { offset, timestampMs } = record
    last = { topic, partition, offset, timestampMs, delivery: { ...decoded.value, body: Buffer.alloc(0) } }
  }
  return last
}
