import fc from 'fast-check'
import type { Attempt } from '../../src/core/attempt.ts'
import { deadHeader, deliveryHeader, encodeDelivery, encodeOrigin } from '../../src/core/delivery.ts'
import { emptyHeaders, type FetchedBatch, type InRecord } from '../../src/core/record.ts'
import type { LogReader } from '../../src/ports.ts'

export const topics = {
  deliveries: 'deliveries',
  tiers: ['retry-1', 'retry-2'],
  parked: 'parked',
  dead: 'dead',
  attempts: 'attempts',
  control: 'control',
} as const

/** A log in memory: partitions as arrays, the offset is the place in it; `start` as retention would leave it. */
export class MemoryLog implements LogReader {
  readonly #partitions = new Map<string, InRecord[]>()
  readonly #starts = new Map<string, number>()
  readonly lanes: number
  #timeMs = 1_700_000_000_000
  fetches = 0
  /** Rejects the fetch of this number. */
  failAt = Number.POSITIVE_INFINITY

  constructor(lanes: number) {
    this.lanes = lanes
  }

  tick(ms: number): number {
    this.#timeMs += ms
    return this.#timeMs
  }

  append(topic: string, partition: number, record: Pick<InRecord, 'key' | 'value' | 'headers'>): number {
    const records = this.records(topic, partition)
    records.push({ ...record, offset: records.length, timestampMs: this.tick(1) })
    return records.length - 1
  }

  records(topic: string, partition: number): InRecord[] {
    const key = `${topic}/${partition}`
    let records = this.#partitions.get(key)
    if (records === undefined) {
      records = []
      this.#partitions.set(key, records)
    }
    return records
  }

  truncate(topic: string, partition: number, start: number): void {
    this.#starts.set(`${topic}/${partition}`, start)
  }

  get size(): number {
    return [...this.#partitions.values()].reduce((sum, { length }) => sum + length, 0)
  }

  async ends(topic: string): Promise<ReadonlyMap<number, number>> {
    return new Map(this.#numbers(topic).map((p) => [p, this.records(topic, p).length]))
  }

  async starts(topic: string): Promise<ReadonlyMap<number, number>> {
    return new Map(this.#numbers(topic).map((p) => [p, this.#starts.get(`${topic}/${p}`) ?? 0]))
  }

  async fetch(at: { topic: string; partition: number; from: number; maxBytes?: number }): Promise<FetchedBatch> {
    if (++this.fetches >= this.failAt) {
      this.failAt = Number.POSITIVE_INFINITY
      throw new Error('the connection was lost')
    }
    const { topic, partition } = at
    const all = this.records(topic, partition)
    const from = Math.max(at.from, this.#starts.get(`${topic}/${partition}`) ?? 0)
    const records = all.slice(from, from + 7)
    return { topic, partition, records, nextOffset: from + records.length, highWatermark: all.length }
  }

  async close(): Promise<void> {}

  #numbers(topic: string): number[] {
    return Array.from({ length: topic === topics.control ? 1 : this.lanes }, (_, i) => i)
  }
}

/** What becomes of one sending of a delivery, step by step. */
export type Step =
  | { readonly t: 'attempt'; readonly status: number; readonly hops: number; readonly park: boolean }
  | { readonly t: 'park' }
  | { readonly t: 'end'; readonly how: 'done' | 'dead' | 'cancelled' }

export interface DeliveryStory {
  readonly number: number
  readonly subscription: number
  /** The first, then each redrive. */
  readonly sendings: readonly (readonly Step[])[]
}

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    t: fc.constant('attempt' as const),
    status: fc.constantFrom(500, 503, 429),
    hops: fc.nat({ max: 2 }),
    park: fc.boolean(),
  }),
  fc.constant({ t: 'park' as const }),
)
const end: fc.Arbitrary<readonly Step[]> = fc.oneof(
  fc.constantFrom('done' as const, 'dead' as const, 'cancelled' as const).map((how) => [{ t: 'end' as const, how }]),
  fc.constant([]),
)
const sending = fc.tuple(fc.array(step, { maxLength: 4 }), end).map(([steps, last]) => [...steps, ...last])

export const stories: fc.Arbitrary<readonly DeliveryStory[]> = fc
  .array(fc.record({ subscription: fc.nat({ max: 4 }), sendings: fc.array(sending, { minLength: 1, maxLength: 3 }) }), {
    minLength: 1,
    maxLength: 12,
  })
  .map((all) => all.map((story, number) => ({ ...story, number })))

/** Writes the stories into a log, as router, lanes and redrives would, all of them side by side. */
export function play(log: MemoryLog, all: readonly DeliveryStory[], prefix = 'd'): void {
  const open = all.map((story) => [...new Player(log, story, prefix).steps()])
  for (let i = 0; open.some((steps) => i < steps.length); i++) for (const steps of open) steps[i]?.()
}

class Player {
  readonly #log: MemoryLog
  readonly #story: DeliveryStory
  readonly #id: string
  readonly #lane: number

  constructor(log: MemoryLog, story: DeliveryStory, prefix: string) {
    this.#log = log
    this.#story = story
    this.#id = `msg_${prefix}${story.number}`
    this.#lane = story.subscription % log.lanes
  }

  *steps(): Generator<() => void> {
    for (const [i, steps] of this.#story.sendings.entries()) {
      const origin = { stream: i === 0 ? 'events/0' : `redrive:${i}`, generation: 1, offset: this.#story.number }
      let attempts = 0
      yield () => this.#place(topics.deliveries, origin, 0, null)
      for (const one of steps) {
        const before = attempts
        if (one.t === 'park') yield () => this.#place(topics.parked, origin, before, null)
        else if (one.t === 'attempt') {
          const n = ++attempts
          yield () => {
            const dueMs = this.#log.tick(5) + 1_000
            this.#attempt(origin, n, one.status, 'scheduled', dueMs)
            this.#place(topics.tiers[1], origin, n, dueMs)
            for (let hop = 0; hop < one.hops; hop++) this.#place(topics.tiers[0], origin, n, dueMs)
            if (one.park) this.#place(topics.parked, origin, n, null)
          }
        } else yield () => this.#end(origin, before + 1, one.how)
      }
    }
  }

  #end(origin: { stream: string; generation: number; offset: number }, n: number, how: 'done' | 'dead' | 'cancelled') {
    if (how === 'done') this.#attempt(origin, n, 200, 'done', null)
    else if (how === 'cancelled') this.#attempt(origin, n, null, 'cancelled', null)
    else {
      this.#attempt(origin, n, 400, 'dead', null)
      this.#place(topics.dead, origin, n, null)
    }
  }

  #place(
    topic: string,
    origin: { stream: string; generation: number; offset: number },
    n: number,
    dueMs: number | null,
  ) {
    const headers = encodeDelivery({
      id: this.#id,
      subscriptionId: `sub${this.#story.subscription}`,
      tenant: this.#story.subscription < 3 ? 'acme' : 'globex',
      eventId: `ev${this.#story.number % 3}`,
      eventType: this.#story.number % 2 === 0 ? 'order.created' : 'order.paid',
      contentType: 'application/json',
      orderingKey: 'k',
      origin,
      eventTimeMs: 1_600_000_000_000,
      attempts: n,
      dueMs,
      lastError: n === 0 ? null : '503',
      traceparent: null,
    })
    if (topic === topics.dead) headers[deadHeader.reason] = Buffer.from('rejected')
    if (topic === topics.dead) headers[deliveryHeader.error] = Buffer.from('400')
    this.#log.append(topic, this.#lane, { key: Buffer.from('sub'), value: Buffer.from('{"a":1}'), headers })
  }

  #attempt(
    origin: { stream: string; generation: number; offset: number },
    n: number,
    status: number | null,
    settlement: Attempt['settlement'],
    dueMs: number | null,
  ) {
    const value: Attempt = {
      v: 1,
      deliveryId: this.#id,
      subscriptionId: `sub${this.#story.subscription}`,
      tenant: this.#story.subscription < 3 ? 'acme' : 'globex',
      eventId: `ev${this.#story.number % 3}`,
      eventType: this.#story.number % 2 === 0 ? 'order.created' : 'order.paid',
      attempt: n,
      startedAtMs: this.#log.tick(2),
      durationMs: 3,
      status,
      error: status === 200 ? null : String(status ?? 'by an operator'),
      errorClass: null,
      outcome: status === null ? null : status === 200 ? 'delivered' : status === 400 ? 'rejected' : 'retryable',
      settlement,
      dueMs,
      excerpt: '',
      url: 'https://example.com/hook',
      lane: this.#lane,
      origin: encodeOrigin(origin),
    }
    this.#log.append(topics.attempts, this.#lane, {
      key: Buffer.from('sub'),
      value: Buffer.from(JSON.stringify(value)),
      headers: emptyHeaders,
    })
  }
}
