import { type Control, controlKey } from '../core/control.ts'
import { ended } from '../core/orders.ts'
import { emptyHeaders, type OutRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { Clock, Kafka } from '../ports.ts'
import { decodeControl } from '../schema/decode.ts'
import { LatestTable } from './latest-table.ts'
import { confirmWritten } from './read-topic.ts'

export interface StandingOrder {
  readonly key: string
  /** Null: the record can't be read; instances pass over it. */
  readonly order: Control | null
  readonly problem: string | null
  /** It was written by a newer Hooktide. */
  readonly newer: boolean
}

/** The `control` topic as a table of orders. */
export class ControlStore {
  readonly #kafka: Kafka
  readonly #topic: string
  readonly #clock: Clock
  readonly #table: LatestTable<Result<Control>>

  /** `keepOpen`: for a service, which asks again and again. */
  constructor(kafka: Kafka, topic: string, clock: Clock, keepOpen = false) {
    this.#table = new LatestTable(kafka, topic, decodeControl, keepOpen)
    this.#kafka = kafka
    this.#topic = topic
    this.#clock = clock
  }

  /** By key; jobs' records too. */
  async read(): Promise<ReadonlyMap<string, StandingOrder>> {
    const { entries } = await this.#table.read()
    return new Map(
      [...entries].map(([key, { value: decoded }]) => {
        const standing = decoded.ok
          ? { key, order: decoded.value, problem: null, newer: false }
          : { key, order: null, problem: decoded.reason, newer: decoded.code === 'unknown-version' }
        return [key, standing]
      }),
    )
  }

  async order(target: Pick<Control, 'kind' | 'target'>): Promise<Control | null> {
    return (await this.read()).get(controlKey(target))?.order ?? null
  }

  give(order: Control): Promise<void> {
    return this.#write([{ key: controlKey(order), value: Buffer.from(JSON.stringify(order)) }])
  }

  clear(keys: readonly string[]): Promise<void> {
    return this.#write(keys.map((key) => ({ key, value: null })))
  }

  close(): Promise<void> {
    return this.#table.close()
  }

  /** Resolves when every instance can read it: they follow the topic with a long poll. */
  async #write(entries: readonly { key: string; value: Buffer | null }[]): Promise<void> {
    if (entries.length === 0) return
    const records = entries.map(
      ({ key, value }): OutRecord => ({ topic: this.#topic, partition: 0, key, value, headers: emptyHeaders }),
    )
    const producer = this.#kafka.producer()
    const reader = this.#kafka.reader()
    try {
      await confirmWritten(reader, this.#clock, records, await producer.send(records), new Map())
    } finally {
      await Promise.all([producer.close(), reader.close()])
    }
  }
}

/** Is it obeyed at this time? `resume` and a job's record say that nothing is held back. */
export function inForce(order: Control, nowMs: number): boolean {
  return order.kind !== 'job' && order.order !== 'resume' && !ended(order, nowMs)
}
