import { headerMap, type InRecord, type OutRecord, recordBytes } from '../../src/core/record.ts'

/** The part of a transaction that lies in one partition; decided when its marker is written there, not before. */
export interface TxnPart {
  state: 'open' | 'committed' | 'aborted'
  firstOffset: number
  /** When the marker was written here. */
  decidedMonoMs?: number
}

export interface Entry {
  readonly offset: number
  /** null: a control marker (or a filler that stands for somebody else's). */
  readonly record: InRecord | null
  readonly txn: TxnPart | null
  /** When it was appended, on the simulation's monotonic clock. */
  readonly appendedMonoMs: number
  /** Reason why no client can decode it. */
  undecodable: string | null
  /** Taken away by retention or compaction. */
  gone: boolean
}

export type Read =
  | { readonly t: 'records'; readonly records: readonly InRecord[]; readonly nextOffset: number }
  | { readonly t: 'undecodable'; readonly offset: number; readonly nextOffset: number; readonly reason: string }

/** One partition's log as its leader keeps it: offsets, control markers, last stable offset, log start, holes. */
export class PartitionLog {
  readonly topic: string
  readonly partition: number
  /** Everything ever appended, also what is gone: for checkers. */
  readonly history: Entry[] = []
  #live: Entry[] = []
  #start = 0
  #next = 0
  readonly #open = new Set<TxnPart>()
  readonly #watchers = new Set<() => void>()
  /** Monotonic ms until which the partition has no leader. */
  leaderlessUntilMs = 0

  constructor(topic: string, partition: number) {
    this.topic = topic
    this.partition = partition
  }

  get start(): number {
    return this.#start
  }

  /** High watermark: the next offset to be given. */
  get end(): number {
    return this.#next
  }

  /** Last stable offset: the first one of the oldest open transaction, else the end. */
  get stableEnd(): number {
    let lso = this.#next
    for (const part of this.#open) lso = Math.min(lso, part.firstOffset)
    return lso
  }

  append(records: readonly OutRecord[], txn: TxnPart | null, timestampMs: number, monoMs: number): number {
    const first = this.#next
    if (txn !== null && !this.#open.has(txn)) {
      txn.firstOffset = first
      this.#open.add(txn)
    }
    for (const record of records) {
      this.#add({
        record: Object.freeze({
          offset: this.#next,
          timestampMs,
          key: typeof record.key === 'string' ? Buffer.from(record.key) : record.key,
          value: record.value,
          headers: Object.freeze(Object.assign(headerMap(), record.headers)),
        }),
        txn,
        monoMs,
      })
    }
    this.#changed()
    return first
  }

  /** The marker takes one offset and decides the transaction's records here. */
  decide(txn: TxnPart, committed: boolean, monoMs: number): void {
    txn.state = committed ? 'committed' : 'aborted'
    txn.decidedMonoMs = monoMs
    this.#open.delete(txn)
    this.#add({ record: null, txn: null, monoMs })
    this.#changed()
  }

  /** Offsets that hold nothing a client may see: another producer's markers. */
  gap(count: number, monoMs: number): void {
    for (let i = 0; i < count; i++) this.#add({ record: null, txn: null, monoMs })
    this.#changed()
  }

  /** Retention: the log now starts at `offset` (at most the end). */
  truncate(offset: number): void {
    this.#start = Math.min(Math.max(offset, this.#start), this.#next)
    for (const entry of this.#live) if (entry.offset < this.#start) entry.gone = true
    this.#live = this.#live.filter((entry) => !entry.gone)
  }

  /** Keeps the last record of each key below the last stable offset; the very last record is never cleaned (active segment). */
  compact(options: { tombstones?: 'keep' | 'remove' } = {}): void {
    const lso = this.stableEnd
    const last = new Map<string, Entry>()
    for (const entry of this.#live) {
      if (entry.record === null || entry.offset >= lso || entry.txn?.state === 'aborted') continue
      last.set(entry.record.key?.toString('latin1') ?? '', entry)
    }
    for (const entry of this.#live) {
      if (entry.offset >= lso || entry.offset === this.#next - 1) continue
      const kept = entry.record !== null && last.get(entry.record.key?.toString('latin1') ?? '') === entry
      if (!kept || (options.tombstones === 'remove' && entry.record?.value === null)) entry.gone = true
    }
    this.#live = this.#live.filter((entry) => !entry.gone)
  }

  /** Read committed from `from` (at least the log start), at most `maxRecords`; always covers whatever it skipped. */
  read(from: number, maxRecords: number, maxBytes: number): Read {
    const lso = this.stableEnd
    const records: InRecord[] = []
    let bytes = 0
    let next = Math.max(from, this.#start)
    for (let i = this.#indexOf(next); i < this.#live.length; i++) {
      const entry = this.#live[i] as Entry
      if (entry.offset >= lso) break
      if (entry.record !== null && entry.txn?.state !== 'aborted') {
        if (entry.undecodable !== null) {
          if (records.length > 0) return { t: 'records', records, nextOffset: next }
          return { t: 'undecodable', offset: entry.offset, nextOffset: entry.offset + 1, reason: entry.undecodable }
        }
        const size = recordBytes(entry.record)
        if (records.length >= maxRecords || (records.length > 0 && bytes + size > maxBytes)) {
          return { t: 'records', records, nextOffset: next }
        }
        bytes += size
        records.push(entry.record)
      }
      next = entry.offset + 1
    }
    return { t: 'records', records, nextOffset: Math.max(next, lso) }
  }

  /** Calls `fn` after every change of what can be read. */
  watch(fn: () => void): () => void {
    this.#watchers.add(fn)
    return () => this.#watchers.delete(fn)
  }

  /** What a read-committed reader from the beginning of time would have seen, also what is gone since. */
  committedHistory(): Entry[] {
    return this.history.filter(
      (entry) => entry.record !== null && (entry.txn === null || entry.txn.state === 'committed'),
    )
  }

  #add(entry: { record: InRecord | null; txn: TxnPart | null; monoMs: number }): void {
    const added: Entry = {
      offset: this.#next++,
      record: entry.record,
      txn: entry.txn,
      appendedMonoMs: entry.monoMs,
      undecodable: null,
      gone: false,
    }
    this.history.push(added)
    this.#live.push(added)
  }

  #changed(): void {
    for (const fn of [...this.#watchers]) fn()
  }

  #indexOf(offset: number): number {
    let low = 0
    let high = this.#live.length
    while (low < high) {
      const mid = (low + high) >> 1
      if ((this.#live[mid] as Entry).offset < offset) low = mid + 1
      else high = mid
    }
    return low
  }
}
