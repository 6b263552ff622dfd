import type { Attempt } from '../src/core/attempt.ts'
import { encodeDelivery } from '../src/core/delivery.ts'
import { deliveryId } from '../src/core/delivery-id.ts'
import { emptyHeaders, type FetchedBatch, type InRecord } from '../src/core/record.ts'
import type { LogReader } from '../src/ports.ts'

const lanes = 12
const subscriptions = 500

/**
 * A log of deliveries with one attempt each, made as it is read: the figures are those of the fold and the store, without a
 * broker's. `spentMs` is what the making took.
 */
export class MadeLog implements LogReader {
  readonly #perLane: number
  spentMs = 0

  constructor(deliveries: number) {
    this.#perLane = Math.ceil(deliveries / lanes)
  }

  get records(): number {
    return 2 * lanes * this.#perLane
  }

  eventId(n: number): string {
    return `ev-${n % Math.floor((lanes * this.#perLane) / 3)}`
  }

  async ends(topic: string): Promise<ReadonlyMap<number, number>> {
    const end = topic === 'deliveries' || topic === 'attempts' ? this.#perLane : 0
    return new Map(Array.from({ length: topic === 'control' ? 1 : lanes }, (_, partition) => [partition, end]))
  }

  async starts(): Promise<ReadonlyMap<number, number>> {
    return new Map(Array.from({ length: lanes }, (_, partition) => [partition, 0]))
  }

  async fetch({ topic, partition, from }: { topic: string; partition: number; from: number }): Promise<FetchedBatch> {
    const startMs = performance.now()
    const nextOffset = Math.min(this.#perLane, from + 300)
    const records: InRecord[] = []
    for (let offset = from; offset < nextOffset; offset++) records.push(this.#record(topic, partition, offset))
    this.spentMs += performance.now() - startMs
    return { topic, partition, records, nextOffset, highWatermark: this.#perLane }
  }

  async close(): Promise<void> {}

  #record(topic: string, lane: number, offset: number): InRecord {
    const n = offset * lanes + lane
    const subscriptionId = `sub-${(lane + lanes * (offset % 41)) % subscriptions}`
    const eventId = this.eventId(n)
    const id = deliveryId({ t: 'given', topic: 'events', id: eventId }, `${subscriptionId} ${n}`)
    const timeMs = 1_700_000_000_000 + offset * 5
    const tenant = `tenant-${lane}`
    const origin = { stream: `events/${lane}`, generation: 1, offset }
    if (topic === 'deliveries') {
      const headers = encodeDelivery({
        id,
        subscriptionId,
        tenant,
        eventId,
        eventType: `order.${n % 5 === 0 ? 'paid' : 'created'}`,
        contentType: 'application/json',
        orderingKey: `key-${n % 1000}`,
        origin,
        eventTimeMs: timeMs,
        attempts: 0,
        dueMs: null,
        lastError: null,
        traceparent: null,
      })
      return { offset, timestampMs: timeMs, key: Buffer.from(subscriptionId), value: body, headers }
    }
    const attempt: Attempt = {
      v: 1,
      deliveryId: id,
      subscriptionId,
      tenant,
      eventId,
      eventType: `order.${n % 5 === 0 ? 'paid' : 'created'}`,
      attempt: 1,
      startedAtMs: timeMs + 5,
      durationMs: 12,
      status: 200,
      error: null,
      errorClass: null,
      outcome: 'delivered',
      settlement: 'done',
      dueMs: null,
      excerpt: 'ok',
      url: `https://example.com/hooks/${subscriptionId}`,
      lane,
      origin: `events/${lane}:1:${offset}`,
    }
    const value = Buffer.from(JSON.stringify(attempt))
    return { offset, timestampMs: timeMs + 20, key: Buffer.from(subscriptionId), value, headers: emptyHeaders }
  }
}

const body = Buffer.alloc(300)
