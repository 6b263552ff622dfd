import { HooktideError } from '../core/error.ts'
import type { PartRange } from '../core/job.ts'
import type { Kafka, LogReader } from '../ports.ts'
import { partitionsOf } from './read-topic.ts'

/** Offsets by partition: `0`, or `orders/0=120,orders/3=7`; a partition that is not named has none. */
export function parseOffsets(text: string, field: string): ReadonlyMap<string, number> | number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  const offsets = new Map<string, number>()
  for (const entry of text.split(',')) {
    const match = /^\s*([A-Za-z0-9._-]+\/\d{1,9})=(\d{1,15})\s*$/.exec(entry)
    if (match === null) {
      throw new HooktideError('usage', `--${field} "${text.slice(0, 60)}" names no offsets`, {
        remedy: 'Write one offset for all partitions, or topic/partition=offset with commas between them.',
      })
    }
    offsets.set(match[1] as string, Number(match[2]))
  }
  return offsets
}

export interface RangeInput {
  /** As `parseOffsets` reads them; from the log's start by default. */
  readonly from?: string | undefined
  /** Up to but without it; to the end as it is now by default. */
  readonly to?: string | undefined
  readonly untilLive?: boolean | undefined
}

/** Partition by partition what is replayed, within what the log holds. Named partitions are the only ones, where some are. */
export async function replayRanges(
  kafka: Kafka,
  reader: LogReader,
  topics: readonly string[],
  input: RangeInput,
): Promise<ReadonlyMap<string, PartRange>> {
  const from = parseOffsets(input.from ?? '0', 'from')
  const to = input.to === undefined ? Number.MAX_SAFE_INTEGER : parseOffsets(input.to, 'to')
  const at = (offsets: ReadonlyMap<string, number> | number, part: string, otherwise: number) =>
    typeof offsets === 'number' ? offsets : (offsets.get(part) ?? otherwise)
  const parts = new Map<string, PartRange>()
  for (const topic of topics) {
    await partitionsOf(kafka, topic)
    const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
    for (const partition of [...ends.keys()].sort((a, b) => a - b)) {
      const part = `${topic}/${partition}`
      // Until live every partition has a hand-over, also one of which nothing is asked.
      if (typeof from !== 'number' && !from.has(part) && input.untilLive !== true) continue
      const end = ends.get(partition) as number
      const first = Math.min(end, Math.max(starts.get(partition) ?? 0, at(from, part, end)))
      const last = input.untilLive === true ? null : Math.max(first, Math.min(end, at(to, part, end)))
      parts.set(part, { from: first, to: last })
    }
  }
  const unknown = typeof from === 'number' ? [] : [...from.keys()].filter((part) => !parts.has(part))
  if (unknown.length > 0) {
    throw new HooktideError('usage', `--from names ${unknown.join(', ')}, which is no events partition`, {
      remedy: `Events topics: ${topics.join(', ')}.`,
    })
  }
  return parts
}
