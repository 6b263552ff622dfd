import { HooktideError } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import { emptyHeaders, type OutRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Clock, Kafka } from '../ports.ts'
import { decodeSubscription } from '../schema/decode.ts'
import { confirmWritten, partitionsOf, readLatest } from './read-topic.ts'

/** What stands in the topic, by id; a record that can't be read stays in the table with its reason. */
export type SubscriptionTable = ReadonlyMap<string, Result<Subscription>>

export interface SubscriptionChange {
  readonly id: string
  /** Null: removed. */
  readonly subscription: Subscription | null
}

/** The `subscriptions` topic as a table that can be changed. */
export class SubscriptionStore {
  readonly #kafka: Kafka
  readonly #topic: string
  readonly #clock: Clock
  /** Where the topic ended when it was read: what comes between it and our write is somebody else's. */
  #ends: ReadonlyMap<number, number> = new Map()

  constructor(kafka: Kafka, topic: string, clock: Clock) {
    this.#kafka = kafka
    this.#topic = topic
    this.#clock = clock
  }

  async read(): Promise<SubscriptionTable> {
    await partitionsOf(this.#kafka, this.#topic)
    const reader = this.#kafka.reader()
    try {
      this.#ends = await reader.ends(this.#topic)
      const latest = await readLatest(reader, this.#topic)
      const entries = [...latest].map(([id, { record }]) => [id, decodeSubscription(record)] as const)
      return new Map(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
    } finally {
      await reader.close()
    }
  }

  /** Resolves when every change is acknowledged and can be read. */
  async write(changes: readonly SubscriptionChange[]): Promise<void> {
    if (changes.length === 0) return
    const count = await partitionsOf(this.#kafka, this.#topic)
    const records = changes.map(({ id, subscription }): OutRecord => {
      const value = subscription === null ? null : Buffer.from(JSON.stringify(subscription))
      return { topic: this.#topic, partition: partitionOf(id, count), key: id, value, headers: emptyHeaders }
    })
    const producer = this.#kafka.producer()
    const reader = this.#kafka.reader()
    try {
      const appended = await producer.send(records)
      await confirmWritten(reader, this.#clock, records, appended, this.#ends)
    } finally {
      await Promise.all([producer.close(), reader.close()])
    }
  }
}

/** The subscription behind an id, or the error that says why there is none. */
export function found(table: SubscriptionTable, id: string): Subscription {
  const entry = table.get(id)
  if (entry === undefined) {
    throw new HooktideError('not-found', `there is no subscription ${id}`, {
      remedy: '`hooktide subscriptions list` shows those there are.',
    })
  }
  if (entry.ok) return entry.value
  throw new HooktideError('subscription.invalid', `the record of subscription ${id} can not be read: ${entry.reason}`, {
    remedy:
      entry.code === 'unknown-version'
        ? 'Use the newer Hooktide that wrote it.'
        : 'Write it again with `hooktide subscriptions apply`, or remove it.',
  })
}
