import { type Delivery, deadHeader, decodeDelivery } from '../core/delivery.ts'
import { HooktideError } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import type { InRecord } from '../core/record.ts'
import type { Kafka, LogReader } from '../ports.ts'
import type { Patience } from './patience.ts'
import type { Progress } from './progress.ts'
import { partitionsOf, readTopic } from './read-topic.ts'

export interface DeadFilter {
  readonly subscription?: string | undefined
  readonly reason?: string | undefined
  readonly tenant?: string | undefined
  /** Its deliveries stand in several lanes. */
  readonly spread?: boolean
  /** Died at or after it, epoch ms. */
  readonly since?: number | undefined
  /** Delivery ids. */
  readonly ids?: ReadonlySet<string> | undefined
}

/** Where to go on: everything before it, partition by partition, was looked at. */
export interface Cursor {
  readonly partition: number
  readonly offset: number
}

export interface DeadLetter {
  readonly partition: number
  readonly record: InRecord
  /** Null when its headers can't be read; `problem` then says why. */
  readonly delivery: Delivery | null
  readonly problem: string | null
  readonly reason: string
  readonly deadAtMs: number
}

/** Dead letters that match, by partition and offset. Bodies are slices of what was fetched: copy what is kept. */
export async function* readDead(
  kafka: Kafka,
  reader: LogReader,
  topic: string,
  filter: DeadFilter,
  cursor: Cursor | null,
  progress?: Progress,
  patience?: Patience,
): AsyncGenerator<DeadLetter> {
  const count = await partitionsOf(kafka, topic)
  const all = Array.from({ length: count }, (_, i) => i)
  const lane =
    filter.subscription === undefined || filter.spread === true ? null : partitionOf(filter.subscription, count)
  const partitions = all.filter((p) => (lane === null || p === lane) && p >= (cursor?.partition ?? 0))
  if (partitions.length === 0) return
  const from = cursor === null ? new Map<number, number>() : new Map([[cursor.partition, cursor.offset]])
  let n = 0
  for await (const { partition, record } of readTopic(reader, topic, { partitions, from })) {
    if (++n % 500 === 0) progress?.update(`${n} dead letters looked at, partition ${partition} of ${count}`)
    if (patience?.isOver({ partition, offset: record.offset }) === true) return
    const letter = decodeDead(partition, record)
    if (matches(letter, filter)) yield letter
  }
}

export function decodeDead(partition: number, record: InRecord): DeadLetter {
  const decoded = decodeDelivery(record)
  const at = Number(record.headers[deadHeader.atMs]?.toString() ?? Number.NaN)
  return {
    partition,
    record,
    delivery: decoded.ok ? decoded.value : null,
    problem: decoded.ok ? null : decoded.reason,
    reason: record.headers[deadHeader.reason]?.toString() ?? 'unknown',
    deadAtMs: Number.isSafeInteger(at) ? at : record.timestampMs,
  }
}

function matches(letter: DeadLetter, filter: DeadFilter): boolean {
  const subscription = letter.delivery?.subscriptionId ?? letter.record.key?.toString()
  if (filter.subscription !== undefined && filter.subscription !== subscription) return false
  if (filter.tenant !== undefined && filter.tenant !== letter.delivery?.tenant) return false
  if (filter.reason !== undefined && filter.reason !== letter.reason) return false
  if (filter.since !== undefined && letter.deadAtMs < filter.since) return false
  return filter.ids === undefined || (letter.delivery !== null && filter.ids.has(letter.delivery.id))
}

/** `partition/offset`. */
export function cursorText({ partition, offset }: Cursor): string {
  return `${partition}/${offset}`
}

export function parseCursor(text: string): Cursor {
  const match = /^(\d{1,9})\/(\d{1,15})$/.exec(text)
  if (match !== null) return { partition: Number(match[1]), offset: Number(match[2]) }
  throw new HooktideError('usage', `"${text.slice(0, 40)}" is no cursor`, {
    remedy: 'Give the one that the last call printed: partition/offset.',
  })
}
