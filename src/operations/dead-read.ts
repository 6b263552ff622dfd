import { type DeadFilter, type DeadLetter, deadMatches, decodeDead } from '../core/dead-letter.ts'
import { partitionOf } from '../core/partition.ts'
import type { Kafka, LogReader } from '../ports.ts'
import type { Cursor } from './cursor.ts'
import type { Patience } from './patience.ts'
import type { Progress } from './progress.ts'
import { partitionsOf, readTopic } from './read-topic.ts'

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
    if (deadMatches(letter, filter)) yield letter
  }
}
