import { decodeOrigin, deliveryHeader } from '../core/delivery.ts'
import type { FetchedBatch, InRecord } from '../core/record.ts'
import type { Crowd } from './crowd.ts'
import type { LaneFlow } from './lane-flow.ts'
import type { Ledger } from './ledger.ts'

export interface BypassHost {
  /** A record of `deliveries` that was passed by, now for good. */
  arrive(record: InRecord): void
}

/**
 * Whose backlog fills a lane's memory is passed by: the reader of `deliveries` goes on without taking its records, so that
 * others' first record is not 200,000 records away; a second reader comes for them (`sweep.ts`).
 *
 * Nothing of it is written down. What was passed by is simply not done: it stays above the committed watermark, and who
 * owns the lane next reads it again. Of a subscription either nothing is passed by or everything from one offset on, so
 * its order is that of the log; `seenTo` is that offset, and for its lines it stands for the reader's position.
 */
export class Bypass {
  readonly #ledger: Ledger
  readonly #crowd: Crowd
  readonly #flow: LaneFlow
  readonly #host: BypassHost
  readonly #behind: number
  /** By subscription: where what was passed by begins. */
  readonly #from = new Map<string, number>()
  #end = 0

  /** `behind`: so much of the log must still be ahead, or parking is as quick. */
  constructor(parts: {
    readonly ledger: Ledger
    readonly crowd: Crowd
    readonly flow: LaneFlow
    readonly behind: number
    readonly host: BypassHost
  }) {
    this.#ledger = parts.ledger
    this.#crowd = parts.crowd
    this.#flow = parts.flow
    this.#behind = parts.behind
    this.#host = parts.host
  }

  /** Looks at a record of `deliveries`, in log order, before it is taken: true when it is passed by. `end`: of the log. */
  passes(record: InRecord, fresh: boolean, end: number): boolean {
    this.#end = end
    if (record.key === null) return false
    if (this.#from.size === 0 && (!this.#crowd.diverting || end - record.offset <= this.#behind)) return false
    const id = record.key.toString()
    const from = this.#from.get(id)
    if (from === undefined && (end - record.offset <= this.#behind || !this.#crowd.diverts(id))) return false
    const header = record.headers[deliveryHeader.origin]
    const origin = header === undefined ? null : decodeOrigin(header.toString())
    if (origin === null) return false
    // A repeat is one in log order only: by the time it is read again the stream's mark has moved on.
    if (this.#ledger.repeats(record.offset, origin, id)) {
      if (fresh) this.#ledger.repeated(record.offset)
    } else if (fresh && from === undefined) this.#from.set(id, record.offset)
    return true
  }

  /** Every record of the subscription below has been taken. */
  seenTo(subscriptionId: string): number {
    return this.#from.get(subscriptionId) ?? this.#ledger.deliveries.next
  }

  get size(): number {
    return this.#from.size
  }

  /** Others may stand ahead still: they come first, but what was passed by must not wait for ever. */
  get urgent(): boolean {
    const { next, full } = this.#ledger.deliveries
    return full || next >= this.#end
  }

  /** Where the second reader has to read; null: nothing was passed by, or there is no room for it now. */
  wanted(): number | null {
    if (this.#from.size === 0 || !this.#flow.room) return null
    let lowest = Number.POSITIVE_INFINITY
    for (const from of this.#from.values()) lowest = Math.min(lowest, from)
    return lowest
  }

  /** A batch of `deliveries`, read once more. */
  onBatch(batch: FetchedBatch): void {
    const { deliveries } = this.#ledger
    for (const record of batch.records) {
      if (record.offset >= deliveries.next) break
      const id = record.key?.toString() ?? ''
      const from = this.#from.get(id)
      if (from === undefined || record.offset < from || deliveries.isDone(record.offset)) continue
      if (!this.#flow.room) {
        this.#passedTo(record.offset)
        return
      }
      this.#from.set(id, record.offset + 1)
      this.#host.arrive(record)
    }
    this.#passedTo(batch.nextOffset)
  }

  /** Nothing that was passed by lies below: who has nothing left ahead of the second reader is done with. */
  #passedTo(offset: number): void {
    const { next } = this.#ledger.deliveries
    for (const [id, from] of this.#from) {
      if (offset >= next) this.#from.delete(id)
      else if (from < offset) this.#from.set(id, offset)
    }
  }
}
