import { HooktideError } from '../core/error.ts'
import type { InRecord, OutRecord } from '../core/record.ts'
import type { Appended, Clock, Kafka, LogReader } from '../ports.ts'

export interface Found {
  readonly partition: number
  readonly record: InRecord
}

/**
 * What stands in a topic now, partition by partition in log order. `from`: where to begin in a partition, if not at its
 * start. Keys and values are slices of fetch responses: copy what is kept.
 */
export async function* readTopic(
  reader: LogReader,
  topic: string,
  options: { readonly partitions?: readonly number[]; readonly from?: ReadonlyMap<number, number> } = {},
): AsyncGenerator<Found> {
  const [starts, ends] = await Promise.all([
    reader.starts(topic, options.partitions),
    reader.ends(topic, options.partitions),
  ])
  for (const partition of [...ends.keys()].sort((a, b) => a - b)) {
    const end = ends.get(partition) as number
    let from = Math.max(starts.get(partition) ?? 0, options.from?.get(partition) ?? 0)
    while (from < end) {
      const batch = await reader.fetch({ topic, partition, from })
      for (const record of batch.records) if (record.offset < end) yield { partition, record }
      if (batch.nextOffset <= from)
        throw new HooktideError('internal', `${topic}/${partition} gives nothing at ${from}`)
      from = batch.nextOffset
    }
  }
}

/** A compacted topic: the last record of each key, tombstones left out. */
export async function readLatest(
  reader: LogReader,
  topic: string,
  options: { readonly partitions?: readonly number[] } = {},
): Promise<Map<string, Found>> {
  const latest = new Map<string, Found>()
  for await (const found of readTopic(reader, topic, options)) {
    const key = found.record.key?.toString()
    if (key === undefined) continue
    latest.delete(key)
    if (found.record.value !== null) latest.set(key, found)
  }
  return latest
}

/** Partitions of a topic that must be there. */
export async function partitionsOf(kafka: Kafka, topic: string): Promise<number> {
  const count = (await kafka.partitions([topic])).get(topic)
  if (count !== undefined) return count
  throw new HooktideError('topic.missing', `topic ${topic} does not exist`, {
    remedy: 'Run `hooktide topics apply`, or correct topics.prefix and topics.events.',
  })
}

/**
 * Reads back what was written, so that whoever reads next finds it. `since`: ends from before the write; a record of the
 * same key between them and ours is somebody else's change that ours replaced unseen.
 */
export async function confirmWritten(
  reader: LogReader,
  clock: Clock,
  records: readonly OutRecord[],
  appended: readonly Appended[],
  since: ReadonlyMap<number, number>,
): Promise<void> {
  const overtaken = new Set<string>()
  for (const { topic, partition, ranges } of byPartition(appended)) {
    const firstOffset = Math.min(...ranges.map(({ from }) => from))
    const ours = (offset: number) => ranges.some(({ from, to }) => offset >= from && offset < to)
    const mine = new Set(records.filter((r) => r.partition === partition).map(({ key }) => String(key)))
    const end = Math.max(...ranges.map(({ to }) => to))
    const deadlineMs = clock.mono() + 10_000
    while (((await reader.ends(topic, [partition])).get(partition) ?? 0) < end) {
      if (clock.mono() > deadlineMs) {
        throw new HooktideError('broker.timeout', `${topic}/${partition} was written, but can not be read back`, {
          remedy: 'Look again in a moment; check the in-sync replicas of the topic.',
        })
      }
      await new Promise<void>((resolve) => clock.after(20, resolve))
    }
    let from = since.get(partition) ?? firstOffset
    let seen = 0
    while (from < end) {
      const batch = await reader.fetch({ topic, partition, from })
      for (const { offset, key } of batch.records) {
        if (offset >= end) break
        if (ours(offset)) seen++
        else if (mine.has(String(key))) overtaken.add(String(key))
      }
      if (batch.nextOffset <= from) break
      from = batch.nextOffset
    }
    if (seen === 0) throw new HooktideError('internal', `${topic}/${partition} does not hold what was written to it`)
  }
  if (overtaken.size === 0) return
  throw new HooktideError('check.failed', `${some([...overtaken])} was changed by somebody else at the same time`, {
    remedy: 'Yours was written last. Look at it and, where the other change matters, make it again.',
  })
}

/** A large write is appended in several parts, and others' records may stand between them. */
function byPartition(appended: readonly Appended[]) {
  const found = new Map<string, { topic: string; partition: number; ranges: { from: number; to: number }[] }>()
  for (const { topic, partition, firstOffset, count } of appended) {
    const key = `${topic}/${partition}`
    const entry = found.get(key) ?? { topic, partition, ranges: [] }
    entry.ranges.push({ from: firstOffset, to: firstOffset + count })
    found.set(key, entry)
  }
  return found.values()
}

function some(names: readonly string[]): string {
  return names.length <= 5 ? names.join(', ') : `${names.slice(0, 5).join(', ')} and ${names.length - 5} more`
}
