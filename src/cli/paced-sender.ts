import { type OutRecord, recordBytes } from '../core/record.ts'
import type { Progress } from '../operations/progress.ts'
import { sleep } from '../operations/sleep.ts'
import type { Appended, Clock, Producer } from '../ports.ts'

interface Range {
  readonly partition: number
  first: number
  last: number
  count: number
}

const batchRecords = 500
const batchBytes = 512 * 1024
/** With a rate, what is due within this time goes together. */
const paceMs = 20

/** Batches as large as they come, or as the rate allows; each awaited before the next, so offsets follow the input's order. */
export class PacedSender {
  sent = 0
  readonly #ranges = new Map<number, Range>()
  readonly #producer: Producer
  readonly #clock: Clock
  readonly #perSecond: number | null
  readonly #progress: Progress
  readonly #signal: AbortSignal
  readonly #startMs: number
  #batch: OutRecord[] = []
  #bytes = 0
  #taken = 0

  constructor(producer: Producer, clock: Clock, perSecond: number | null, progress: Progress, signal: AbortSignal) {
    this.#producer = producer
    this.#clock = clock
    this.#perSecond = perSecond
    this.#progress = progress
    this.#signal = signal
    this.#startMs = clock.mono()
  }

  get elapsedMs(): number {
    return this.#clock.mono() - this.#startMs
  }

  get ranges(): readonly Range[] {
    return [...this.#ranges.values()].sort((a, b) => a.partition - b.partition)
  }

  /** False: interrupted, no more is wanted. */
  async add(record: OutRecord): Promise<boolean> {
    if (this.#signal.aborted) return false
    const dueMs = this.#perSecond === null ? 0 : (this.#taken++ * 1000) / this.#perSecond
    const waitMs = dueMs - this.elapsedMs
    if (waitMs > 0) {
      await this.flush()
      await sleep(this.#clock, Math.max(waitMs, paceMs), this.#signal)
      if (this.#signal.aborted) return false
    }
    this.#batch.push(record)
    const { key, value, headers } = record
    this.#bytes += recordBytes({ key: key === null ? null : Buffer.from(key), value, headers })
    if (this.#batch.length >= batchRecords || this.#bytes >= batchBytes) await this.flush()
    return true
  }

  async flush(): Promise<void> {
    const batch = this.#batch
    if (batch.length === 0) return
    this.#batch = []
    this.#bytes = 0
    for (const appended of await this.#producer.send(batch)) this.#note(appended)
    this.sent += batch.length
    this.#progress.update(`${this.sent} events, ${Math.round((this.sent * 1000) / Math.max(1, this.elapsedMs))}/s`)
  }

  #note({ partition, firstOffset, count }: Appended): void {
    const range = this.#ranges.get(partition)
    if (range === undefined) {
      this.#ranges.set(partition, { partition, first: firstOffset, last: firstOffset + count - 1, count })
    } else {
      range.last = firstOffset + count - 1
      range.count += count
    }
  }
}
