import { HooktideError } from '../core/error.ts'
import type { FetchedBatch, TopicPartition } from '../core/record.ts'
import type { LogReader } from '../ports.ts'
import type { KafkaClient } from './client.ts'
import { insist } from './deadline.ts'
import { missingTopic, translate } from './errors.ts'
import { FetchGroup } from './fetch-group.ts'
import type { Broker } from './internals.ts'
import type { Link } from './link.ts'
import { library } from './load.ts'
import { visible } from './record-set.ts'

interface ListOffsetsResponse {
  readonly responses: readonly {
    topic: string
    partitions: readonly { partition: number; errorCode: number; offset: string }[]
  }[]
}

const latest = '-1'
const earliest = '-2'
const offsetOutOfRangeCode = 1
const defaultMaxBytes = 1024 * 1024

/**
 * Reads single partitions without a group, read committed. Leader moves, restarts and lost connections are ridden out
 * until the client's deadline (then `broker.unavailable` or `broker.timeout`).
 *
 * Keys, values and headers are slices of the fetch response: nothing is copied, and keeping one record keeps the whole
 * response (about `maxBytes`) alive. Work in passing is fine; a long-lived table must copy what it keeps
 * (`Buffer.from(slice)`), or parse it.
 */
export class KafkaLogReader implements LogReader {
  readonly #client: KafkaClient
  readonly #link: Link
  /** Long polls on connections of their own: a fetch that wants an answer now never waits behind one. */
  #pollLink: Link | null = null
  readonly #now: FetchGroup
  #polls: FetchGroup | null = null

  constructor(client: KafkaClient) {
    this.#client = client
    this.#link = client.link()
    this.#now = new FetchGroup(this.#link, client.deps.clock)
  }

  ends(topic: string, partitions?: readonly number[]): Promise<ReadonlyMap<number, number>> {
    return this.#bounds(topic, partitions, latest)
  }

  starts(topic: string, partitions?: readonly number[]): Promise<ReadonlyMap<number, number>> {
    return this.#bounds(topic, partitions, earliest)
  }

  async fetch(at: TopicPartition & { from: number; maxBytes?: number; maxWaitMs?: number }): Promise<FetchedBatch> {
    const { topic, partition } = at
    const maxBytes = at.maxBytes ?? defaultMaxBytes
    const maxWaitMs = at.maxWaitMs ?? 0
    let from = at.from
    let alone = false
    const [link, group] = maxWaitMs > 0 ? this.#polling() : [this.#link, this.#now]
    for (;;) {
      const data = await this.#insist(link, { operation: 'fetch', topic }, maxWaitMs, async () => {
        const data = await group.fetch({ topic, partition, from, maxBytes, maxWaitMs, alone })
        if (data.errorCode !== 0 && data.errorCode !== offsetOutOfRangeCode) throw errorOf(data.errorCode, topic)
        return data
      })
      if (data.errorCode === offsetOutOfRangeCode) {
        from = await this.#insideLog(topic, partition, from)
        continue
      }
      const stable = Number(data.lastStableOffset)
      if (data.messages.bytes === 0 && stable > from && !alone) {
        // Something is there, or was: a batch above `maxBytes`, or compaction has taken all of it. Alone, only the latter is empty.
        alone = true
        continue
      }
      const seen = visible(data.messages, data.abortedTransactions, from)
      // Empty below the stable end: compaction has taken everything up to it, markers included.
      const nextOffset = data.messages.bytes === 0 && stable > from ? stable : seen.nextOffset
      for (const { offset, nextOffset, reason } of seen.undecodable) {
        this.#client.deps.observer.log('error', 'kafka.undecodable', { topic, partition, offset, nextOffset, reason })
      }
      const { records, undecodable } = seen
      const batch = { topic, partition, records, nextOffset, highWatermark: Number(data.highWatermark) }
      return undecodable.length === 0 ? batch : { ...batch, undecodable }
    }
  }

  async close(): Promise<void> {
    this.#link.close()
    this.#pollLink?.close()
  }

  #polling(): [Link, FetchGroup] {
    this.#pollLink ??= this.#client.link()
    this.#polls ??= new FetchGroup(this.#pollLink, this.#client.deps.clock)
    return [this.#pollLink, this.#polls]
  }

  /** Where to go on after OFFSET_OUT_OF_RANGE: the log start when retention has passed us; beyond the end is our fault. */
  async #insideLog(topic: string, partition: number, from: number): Promise<number> {
    const start = (await this.starts(topic, [partition])).get(partition) ?? 0
    if (from < start) return start
    throw new HooktideError('internal', `Offset ${from} is beyond the end of ${topic} partition ${partition}`)
  }

  async #bounds(
    topic: string,
    wanted: readonly number[] | undefined,
    timestamp: string,
  ): Promise<ReadonlyMap<number, number>> {
    const bounds = new Map<number, number>()
    await this.#insist(this.#link, { operation: 'list offsets', topic }, 0, async () => {
      const partitions = wanted ?? [...(await this.#link.leaders(topic)).keys()]
      const perLeader = new Map<Broker, number[]>()
      for (const partition of partitions) {
        if (bounds.has(partition)) continue
        const broker = await this.#link.leader(topic, partition)
        const list = perLeader.get(broker)
        if (list === undefined) perLeader.set(broker, [partition])
        else list.push(partition)
      }
      await Promise.all(
        [...perLeader].map(([broker, list]) => this.#listOffsets(broker, topic, list, timestamp, bounds)),
      )
    })
    return bounds
  }

  async #listOffsets(
    broker: Broker,
    topic: string,
    partitions: readonly number[],
    timestamp: string,
    bounds: Map<number, number>,
  ) {
    const response = await this.#link.request<ListOffsetsResponse>(broker, 'ListOffsets', {
      isolationLevel: 1,
      topics: [{ topic, partitions: partitions.map((partition) => ({ partition, timestamp })) }],
    })
    for (const answer of response.responses) {
      for (const { partition, errorCode, offset } of answer.partitions) {
        if (errorCode !== 0) throw errorOf(errorCode, topic)
        bounds.set(partition, Number(offset))
      }
    }
  }

  async #insist<T>(
    link: Link,
    doing: { operation: string; topic: string },
    extraMs: number,
    attempt: () => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#client.deps
    try {
      return await insist(clock, clock.mono() + this.#client.deadlineMs + extraMs, doing.operation, attempt, (error) =>
        link.forget(error, { topics: [doing.topic] }),
      )
    } catch (error) {
      throw translate(error, doing)
    }
  }
}

function errorOf(code: number, topic: string): Error {
  return code === 3 ? missingTopic(topic) : library.createErrorFromCode(code)
}
