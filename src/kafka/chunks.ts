import { HooktideError } from '../core/error.ts'
import type { OutRecord, TopicPartition } from '../core/record.ts'
import { recordSize } from './encode-batch.ts'

/** Records of one partition that go out in one record batch. */
export interface Chunk extends TopicPartition {
  readonly records: readonly OutRecord[]
  /** Encoded size of each record. */
  readonly sizes: readonly number[]
}

/** Brokers' default `max.message.bytes` is 1 MiB and holds for a whole batch: kafkajs never splits one (row 14). */
export const maxChunkBytes = 900 * 1024

/**
 * Splits records into rounds: a round has at most one chunk per partition and is acknowledged before the next one
 * begins, so the order within a partition is the order given. A record that is larger than a chunk goes alone: the
 * topic may allow it.
 */
export function rounds(records: readonly OutRecord[], maxBytes = maxChunkBytes): Chunk[][] {
  interface Filling extends TopicPartition {
    records: OutRecord[]
    sizes: number[]
  }
  const open = new Map<string, { chunks: Filling[]; bytes: number }>()
  for (const record of records) {
    if (!Number.isInteger(record.partition) || record.partition < 0) {
      throw new HooktideError('internal', `record for ${record.topic} without a partition (${record.partition})`)
    }
    const key = `${record.partition}/${record.topic}`
    const size = recordSize(record)
    let slot = open.get(key)
    if (slot === undefined || slot.bytes + size > maxBytes) {
      const fresh: Filling = { topic: record.topic, partition: record.partition, records: [], sizes: [] }
      if (slot === undefined) {
        slot = { chunks: [fresh], bytes: 0 }
        open.set(key, slot)
      } else {
        slot.chunks.push(fresh)
        slot.bytes = 0
      }
    }
    const chunk = slot.chunks.at(-1) as Filling
    chunk.records.push(record)
    chunk.sizes.push(size)
    slot.bytes += size
  }
  const out: Chunk[][] = []
  for (const { chunks } of open.values()) {
    chunks.forEach((chunk, round) => {
      const list = out[round] ?? []
      out[round] = list
      list.push(chunk)
    })
  }
  return out
}

/** Two halves of a chunk that the broker found too large; null when there is nothing to split. */
export function halves(chunk: Chunk): [Chunk, Chunk] | null {
  const middle = chunk.records.length >> 1
  if (middle === 0) return null
  const part = (from: number, to?: number): Chunk => ({
    topic: chunk.topic,
    partition: chunk.partition,
    records: chunk.records.slice(from, to),
    sizes: chunk.sizes.slice(from, to),
  })
  return [part(0, middle), part(middle)]
}
