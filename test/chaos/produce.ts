import { partitionOf } from '../../src/core/partition.ts'
import { headerMap, type OutRecord } from '../../src/core/record.ts'
import { readTopic } from '../../src/operations/read-topic.ts'
import type { Kafka } from '../../src/ports.ts'
import type { PlannedEvent } from './plan.ts'
import { pause } from './wait.ts'

export interface ProducedEvent {
  readonly id: string
  readonly type: string
  readonly key: string | null
  readonly sequence: number
}

interface Waiting extends ProducedEvent {
  readonly record: OutRecord
}

/**
 * Writes events at an even rate, each exactly once and each key in order, whatever happens to the broker: after a failed
 * call it looks which of them stand in the topic. So what is doubled or missing behind them is not our doing.
 */
export class EventSource {
  readonly produced: ProducedEvent[] = []
  readonly #kafka: Kafka
  readonly #topic: string
  readonly #partitions: number
  readonly #perSecond: number
  readonly #sequences = new Map<string, number>()
  #stopped = false
  failures = 0

  constructor(kafka: Kafka, options: { topic: string; partitions: number; perSecond: number }) {
    this.#kafka = kafka
    this.#topic = options.topic
    this.#partitions = options.partitions
    this.#perSecond = options.perSecond
  }

  stop(): void {
    this.#stopped = true
  }

  /** Resolves when all are acknowledged. */
  async produce(events: readonly PlannedEvent[]): Promise<void> {
    const producer = this.#kafka.producer()
    const waiting = events.map((event) => this.#waiting(event))
    const beginMs = performance.now()
    let sent = 0
    try {
      while (sent < waiting.length && !this.#stopped) {
        const due = Math.ceil(((performance.now() - beginMs) / 1000) * this.#perSecond)
        // After an outage it catches up, but not all at once.
        const batch = waiting.slice(sent, Math.min(due, sent + 500))
        if (batch.length > 0) await this.#send(producer, batch)
        sent += batch.length
        await pause(20)
      }
    } finally {
      await producer.close()
    }
  }

  async #send(producer: ReturnType<Kafka['producer']>, batch: readonly Waiting[]): Promise<void> {
    let left = batch
    while (left.length > 0 && !this.#stopped) {
      try {
        await producer.send(left.map(({ record }) => record))
        this.#acknowledged(left)
        return
      } catch {
        this.failures++
        await pause(200)
        const there = await this.#inTopic().catch(() => null)
        if (there === null) continue
        this.#acknowledged(left.filter(({ id }) => there.has(id)))
        left = left.filter(({ id }) => !there.has(id))
      }
    }
  }

  #acknowledged(events: readonly Waiting[]): void {
    for (const { id, type, key, sequence } of events) this.produced.push({ id, type, key, sequence })
  }

  async #inTopic(): Promise<Set<string>> {
    const reader = this.#kafka.reader()
    try {
      const ids = new Set<string>()
      for await (const { record } of readTopic(reader, this.#topic)) ids.add(String(record.headers['event-id']))
      return ids
    } finally {
      await reader.close()
    }
  }

  #waiting({ type, key, bytes }: PlannedEvent): Waiting {
    const line = key ?? ''
    const sequence = this.#sequences.get(line) ?? 0
    this.#sequences.set(line, sequence + 1)
    const id = `e-${line}-${sequence}`
    const partition = key === null ? sequence % this.#partitions : partitionOf(key, this.#partitions)
    const value = Buffer.from(JSON.stringify({ key, sequence, pad: 'x'.repeat(bytes) }))
    const headers = headerMap([
      ['event-type', type],
      ['event-id', id],
    ])
    return { id, type, key, sequence, record: { topic: this.#topic, partition, key, value, headers } }
  }
}
