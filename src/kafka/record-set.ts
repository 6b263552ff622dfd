import type { InRecord } from '../core/record.ts'

/** Offsets `offset` ≤ o < `nextOffset` hold something we could not read. Skipping them is right; saying nothing is not. */
export interface Undecodable {
  readonly offset: number
  readonly nextOffset: number
  readonly reason: string
}

/** One record batch (magic 2) of a fetch response. Empty ones exist: compaction leaves them. */
export interface RecordBatch {
  readonly baseOffset: number
  /** First offset after the batch, whatever compaction took out of it. */
  readonly nextOffset: number
  readonly producerId: number
  readonly transactional: boolean
  readonly control: 'abort' | 'commit' | 'other' | null
  readonly records: readonly InRecord[]
  readonly undecodable: readonly Undecodable[]
}

/** What stands in `messages` of a fetch response after our decoding. */
export interface RecordSet {
  readonly batches: readonly RecordBatch[]
  /** Bytes of the set; 0 says that the broker had nothing at all. */
  readonly bytes: number
}

/** As kafkajs decodes it from the response. */
export interface AbortedTransaction {
  readonly producerId: string
  readonly firstOffset: string
}

export interface Visible {
  readonly records: InRecord[]
  readonly undecodable: Undecodable[]
  readonly nextOffset: number
}

/**
 * What a read-committed reader standing at `from` may see, and where it stands afterwards.
 * The broker lists aborted transactions in no useful order, and several of them can begin within one batch; a
 * transaction ends with its abort marker only. (The stock filter takes the list as sorted, opens one transaction per
 * record, and takes any record with the key 00000000 for a marker, so it hands out aborted records.)
 * Source: KIP-98, and `CompletedFetch` of the Java consumer.
 */
export function visible(set: RecordSet, aborted: readonly AbortedTransaction[] | null, from: number): Visible {
  const queue = (aborted ?? [])
    .map((t) => ({ producerId: Number(t.producerId), firstOffset: Number(t.firstOffset) }))
    .sort((a, b) => a.firstOffset - b.firstOffset)
  const open = new Set<number>()
  let begun = 0
  const out: Visible = { records: [], undecodable: [], nextOffset: from }
  let nextOffset = from
  for (const batch of set.batches) {
    for (let next = queue[begun]; next !== undefined && next.firstOffset < batch.nextOffset; next = queue[++begun]) {
      open.add(next.producerId)
    }
    if (batch.nextOffset > nextOffset) nextOffset = batch.nextOffset
    if (batch.control !== null) {
      if (batch.control === 'abort') open.delete(batch.producerId)
      continue
    }
    if (batch.transactional && open.has(batch.producerId)) continue
    for (const record of batch.records) if (record.offset >= from) out.records.push(record)
    for (const part of batch.undecodable) if (part.nextOffset > from) out.undecodable.push(part)
  }
  return { ...out, nextOffset }
}
