import { HooktideError } from '../core/error.ts'
import { settledMs } from '../core/freshness.ts'
import { partitionOf } from '../core/partition.ts'
import { emptyHeaders, type OutRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Appended, Clock, Kafka } from '../ports.ts'
import { decodeSubscription } from '../schema/decode.ts'
import { LatestTable } from './latest-table.ts'
import { confirmWritten, partitionsOf } from './read-topic.ts'

/** What stands in the topic, by id; a record that can't be read stays in the table with its reason. */
export type SubscriptionTable = ReadonlyMap<string, Result<Subscription>>

export interface SubscriptionSnapshot {
  readonly table: SubscriptionTable
  /** Of each record, by id: changes with every write. */
  readonly versions: ReadonlyMap<string, string>
  readonly ends: ReadonlyMap<number, number>
}

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
  readonly #table: LatestTable<Result<Subscription>>
  #ends: ReadonlyMap<number, number> = new Map()
  /** Per id, the change under way: who looks and then writes must be alone with it, as far as this process goes. */
  readonly #changing = new Map<string, Promise<unknown>>()

  /** `keepOpen`: for a service, which asks again and again. */
  constructor(kafka: Kafka, topic: string, clock: Clock, keepOpen = false) {
    this.#kafka = kafka
    this.#topic = topic
    this.#clock = clock
    this.#table = new LatestTable(kafka, topic, decodeSubscription, keepOpen)
  }

  async read(): Promise<SubscriptionTable> {
    return (await this.snapshot()).table
  }

  /** The table, and what tells a write that comes after it from one that came between. */
  async snapshot(): Promise<SubscriptionSnapshot> {
    const { entries, ends } = await this.#table.read()
    this.#ends = ends
    const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
    return {
      table: new Map(sorted.map(([id, { value }]) => [id, value])),
      versions: new Map(sorted.map(([id, { partition, offset }]) => [id, `${partition}-${offset}`])),
      ends,
    }
  }

  /** Runs alone among the changes of this id. */
  async alone<T>(id: string, run: () => Promise<T>): Promise<T> {
    const before = this.#changing.get(id) ?? Promise.resolve()
    const mine = before.then(run, run)
    const settled = mine.catch(() => undefined)
    this.#changing.set(id, settled)
    try {
      return await mine
    } finally {
      if (this.#changing.get(id) === settled) this.#changing.delete(id)
    }
  }

  /**
   * Resolves when every change is acknowledged, can be read, and is known to every router; to the version of each. `since`: the ends of the snapshot
   * it was decided by, if not the last one read.
   */
  async write(
    changes: readonly SubscriptionChange[],
    since: ReadonlyMap<number, number> = this.#ends,
  ): Promise<ReadonlyMap<string, string>> {
    if (changes.length === 0) return new Map()
    const count = await partitionsOf(this.#kafka, this.#topic)
    const records = changes.map(({ id, subscription }): OutRecord => {
      const value = subscription === null ? null : Buffer.from(JSON.stringify(subscription))
      return { topic: this.#topic, partition: partitionOf(id, count), key: id, value, headers: emptyHeaders }
    })
    const producer = this.#kafka.producer()
    const reader = this.#kafka.reader()
    try {
      const appended = await producer.send(records)
      await confirmWritten(reader, this.#clock, records, appended, since)
      await new Promise<void>((resolve) => this.#clock.after(settledMs, resolve))
      return versionsOf(records, appended)
    } finally {
      await Promise.all([producer.close(), reader.close()])
    }
  }

  close(): Promise<void> {
    return this.#table.close()
  }
}

function versionsOf(records: readonly OutRecord[], appended: readonly Appended[]): Map<string, string> {
  const next = new Map(appended.toReversed().map(({ partition, firstOffset }) => [partition, firstOffset]))
  const versions = new Map<string, string>()
  for (const { partition, key } of records) {
    const offset = next.get(partition) ?? 0
    next.set(partition, offset + 1)
    versions.set(String(key), `${partition}-${offset}`)
  }
  return versions
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
  throw new HooktideError(
    'subscription.unreadable',
    `the record of subscription ${id} can not be read: ${entry.reason}`,
    {
      remedy:
        entry.code === 'unknown-version'
          ? 'Use the newer Hooktide that wrote it.'
          : 'Write it again with `hooktide subscriptions apply`, or remove it.',
    },
  )
}
