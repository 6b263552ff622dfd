import type { InRecord } from '../../core/record.ts'
import { type AbortedTransaction, type RecordSet, type Undecodable, visible } from '../record-set.ts'

interface PartitionData {
  readonly partition: number
  readonly highWatermark: string
  readonly abortedTransactions: readonly AbortedTransaction[] | null
  readonly messages: RecordSet
}

/**
 * Replaces `consumer/batch`: what kafkajs's `eachBatch` gets per partition and fetch. Our handlers read `records`,
 * `undecodable` and `nextOffset`; the rest is what kafkajs's runner calls.
 *
 * Differences to the stock class that matter: a batch of nothing but control, aborted or compacted-away records is NOT
 * empty as long as it moves the position, so the handler sees every offset pass; and the position comes from the
 * record batches' headers, not from the last record that survived compaction.
 */
export class FetchBatch {
  readonly topic: string
  readonly partition: number
  readonly fetchedOffset: number
  /** Decimal string, as kafkajs's own events want it. */
  readonly highWatermark: string
  readonly records: readonly InRecord[]
  readonly undecodable: readonly Undecodable[]
  readonly nextOffset: number
  /** kafkajs's name for `records`: it only takes the length and the last one's offset. */
  readonly messages: readonly InRecord[]

  constructor(topic: string, fetchedOffset: string | number, data: PartitionData) {
    const seen = visible(data.messages, data.abortedTransactions, Number(fetchedOffset))
    this.topic = topic
    this.partition = data.partition
    this.fetchedOffset = Number(fetchedOffset)
    this.highWatermark = data.highWatermark
    this.records = seen.records
    this.messages = seen.records
    this.undecodable = seen.undecodable
    this.nextOffset = seen.nextOffset
  }

  isEmpty(): boolean {
    return this.nextOffset <= this.fetchedOffset
  }

  isEmptyIncludingFiltered(): boolean {
    return this.isEmpty()
  }

  isEmptyDueToFiltering(): boolean {
    return false
  }

  isEmptyControlRecord(): boolean {
    return false
  }

  isEmptyDueToLogCompactedMessages(): boolean {
    return false
  }

  firstOffset(): string | null {
    return this.isEmpty() ? null : String(this.records[0]?.offset ?? this.fetchedOffset)
  }

  lastOffset(): string {
    return this.isEmpty() ? String(Number(this.highWatermark) - 1) : String(this.nextOffset - 1)
  }

  offsetLag(): string {
    return String(Math.max(0, Number(this.highWatermark) - this.nextOffset))
  }

  offsetLagLow(): string {
    return this.isEmpty() ? '0' : String(Math.max(0, Number(this.highWatermark) - 1 - Number(this.firstOffset())))
  }
}
