import { type InRecord, ownedRecord } from '../core/record.ts'
import type { Kafka, LogReader } from '../ports.ts'
import { partitionsOf } from './read-topic.ts'

export interface LatestEntry<T> {
  readonly value: T
  readonly partition: number
  readonly offset: number
}

export interface LatestSnapshot<T> {
  /** By key. The table's own map: it goes on changing with later reads. */
  readonly entries: ReadonlyMap<string, LatestEntry<T>>
  /** Where the topic ended when it was read: what comes between it and a write is somebody else's. */
  readonly ends: ReadonlyMap<number, number>
}

/**
 * A compacted topic as a table that is as new as the topic each time it is asked, and reads only what came since. For
 * whoever asks again and again; must be asked more often than tombstones are kept (`delete.retention.ms`).
 */
export class LatestTable<T> {
  readonly #kafka: Kafka
  readonly #topic: string
  readonly #decode: (record: InRecord) => T
  readonly #entries = new Map<string, LatestEntry<T>>()
  readonly #positions = new Map<number, number>()
  readonly #keepOpen: boolean
  #reader: LogReader | null = null
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<LatestSnapshot<T>> | null = null

  /** `keepOpen`: one connection for all reads, until `close`. */
  constructor(kafka: Kafka, topic: string, decode: (record: InRecord) => T, keepOpen = false) {
    this.#kafka = kafka
    this.#topic = topic
    this.#decode = decode
    this.#keepOpen = keepOpen
  }

  read(): Promise<LatestSnapshot<T>> {
    // The reading under way may have asked for the ends before this call: it waits for the next one, with all who came.
    this.#next ??= this.#running.then(() => {
      this.#next = null
      const reading = this.#refresh()
      this.#running = reading.catch(() => undefined)
      return reading
    })
    return this.#next
  }

  async close(): Promise<void> {
    await this.#running
    await this.#reader?.close()
    this.#reader = null
  }

  async #refresh(): Promise<LatestSnapshot<T>> {
    if (this.#positions.size === 0) await partitionsOf(this.#kafka, this.#topic)
    const reader = this.#reader ?? this.#kafka.reader()
    if (this.#keepOpen) this.#reader = reader
    try {
      const [starts, ends] = await Promise.all([reader.starts(this.#topic), reader.ends(this.#topic)])
      if ([...this.#positions].some(([partition, at]) => at > (ends.get(partition) ?? 0))) this.#forget()
      for (const [partition, end] of ends) await this.#readOn(reader, partition, starts.get(partition) ?? 0, end)
      return { entries: this.#entries, ends }
    } finally {
      if (!this.#keepOpen) await reader.close()
    }
  }

  /** The topic was made anew. */
  #forget(): void {
    this.#entries.clear()
    this.#positions.clear()
  }

  async #readOn(reader: LogReader, partition: number, start: number, end: number): Promise<void> {
    let from = Math.max(start, this.#positions.get(partition) ?? 0)
    while (from < end) {
      const batch = await reader.fetch({ topic: this.#topic, partition, from })
      for (const record of batch.records) this.#apply(partition, record)
      if (batch.nextOffset <= from) break
      from = batch.nextOffset
      this.#positions.set(partition, from)
    }
    this.#positions.set(partition, Math.max(from, this.#positions.get(partition) ?? 0))
  }

  #apply(partition: number, record: InRecord): void {
    const key = record.key?.toString()
    if (key === undefined) return
    this.#entries.delete(key)
    if (record.value === null) return
    this.#entries.set(key, { value: this.#decode(ownedRecord(record)), partition, offset: record.offset })
  }
}
