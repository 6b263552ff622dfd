import type { Attempt } from '../src/core/attempt.ts'
import { deliveryHeader, encodeOrigin } from '../src/core/delivery.ts'
import { emptyHeaders, type FetchedBatch, headerMap, type InRecord } from '../src/core/record.ts'
import type { LogReader } from '../src/ports.ts'

export const lanes = 12
const subscriptions = 500

/**
 * A log of deliveries with one attempt each, made as it is read: the figures are those of the fold and the store, without a
 * broker's. `spentMs` is what the making took, about what decoding fetched records takes.
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
    const id = madeId(n)
    const timeMs = 1_700_000_000_000 + offset * 5
    const tenant = `tenant-${lane}`
    const origin = { stream: `events/${lane}`, generation: 1, offset }
    if (topic === 'deliveries') {
      const headers: Record<string, Buffer> = Object.assign(headerMap(), sameHeaders)
      headers[deliveryHeader.id] = Buffer.from(id)
      headers[deliveryHeader.subscription] = Buffer.from(subscriptionId)
      headers[deliveryHeader.tenant] = Buffer.from(tenant)
      headers[deliveryHeader.event] = Buffer.from(eventId)
      headers[deliveryHeader.type] = Buffer.from(typeOf(n))
      headers[deliveryHeader.key] = Buffer.from(`key-${n % 1000}`)
      headers[deliveryHeader.origin] = Buffer.from(encodeOrigin(origin))
      headers[deliveryHeader.time] = Buffer.from(String(timeMs))
      return { offset, timestampMs: timeMs, key: Buffer.from(subscriptionId), value: body, headers }
    }
    const attempt: Attempt = {
      v: 1,
      deliveryId: id,
      subscriptionId,
      tenant,
      eventId,
      eventType: typeOf(n),
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

const sameHeaders = {
  [deliveryHeader.version]: Buffer.from('1'),
  [deliveryHeader.contentType]: Buffer.from('application/json'),
  [deliveryHeader.attempts]: Buffer.from('0'),
}

function typeOf(n: number): string {
  return n % 5 === 0 ? 'order.paid' : 'order.created'
}

/** As scattered as a hash, for a fraction of its cost: what is measured is the fold. */
function madeId(n: number): string {
  const a = mixed(n, 0x85ebca6b)
  const b = mixed(n + 0x9e3779b9, 0xc2b2ae35)
  const part = (h: number, shift: number) => fragments[(h >>> shift) & 1023] as string
  return `msg_${part(a, 0)}${part(a, 10)}${part(a, 20)}${part(b, 0)}${part(b, 10)}${part(b, 20)}${n}`
}

function mixed(n: number, by: number): number {
  const h = Math.imul(n ^ (n >>> 15), by)
  return Math.imul(h ^ (h >>> 13), 0x27d4eb2f)
}

const fragments = Array.from({ length: 1024 }, (_, i) =>
  (Math.imul(i + 1, 0x9e3779b1) >>> 0).toString(36).padStart(7, '0').slice(-5),
)
