import type { LogReader } from '../ports.ts'
import { decodeAttempt } from '../schema/decode.ts'

/** How far a subscription has come, by the delivery log. */
export interface Standing {
  readonly settled: number
  readonly dead: number
  readonly attempts: number
}

export const nothingYet: Standing = { settled: 0, dead: 0, attempts: 0 }

/** Follows the `attempts` topic, for the display and to know when all is over. */
export class AttemptsTail {
  readonly #reader: LogReader
  readonly #topic: string
  readonly #positions = new Map<number, number>()
  readonly #settled = new Set<string>()
  readonly #bySubscription = new Map<string, Standing>()
  /** Records seen. */
  attempts = 0

  constructor(reader: LogReader, topic: string) {
    this.#reader = reader
    this.#topic = topic
  }

  of(subscriptionId: string): Standing {
    return this.#bySubscription.get(subscriptionId) ?? nothingYet
  }

  /** Reads what has come since the last call. */
  async poll(): Promise<void> {
    const ends = await this.#reader.ends(this.#topic)
    for (const [partition, end] of ends) {
      let from = this.#positions.get(partition) ?? 0
      while (from < end) {
        const batch = await this.#reader.fetch({ topic: this.#topic, partition, from })
        for (const record of batch.records) this.#add(record)
        if (batch.nextOffset <= from) break
        from = batch.nextOffset
      }
      this.#positions.set(partition, from)
    }
  }

  #add(record: { readonly key: Buffer | null; readonly value: Buffer | null }): void {
    const decoded = decodeAttempt(record)
    if (!decoded.ok) return
    const { deliveryId, subscriptionId, settlement } = decoded.value
    const before = this.of(subscriptionId)
    const final = settlement !== 'scheduled' && settlement !== 'released' && !this.#settled.has(deliveryId)
    if (final) this.#settled.add(deliveryId)
    this.attempts++
    this.#bySubscription.set(subscriptionId, {
      settled: before.settled + (final ? 1 : 0),
      dead: before.dead + (final && settlement === 'dead' ? 1 : 0),
      attempts: before.attempts + 1,
    })
  }
}
