import type { TopicPartition } from '../core/record.ts'
import type { Clock } from '../ports.ts'
import { missingTopic } from './errors.ts'
import type { Broker } from './internals.ts'
import type { Link } from './link.ts'
import { library } from './load.ts'
import type { AbortedTransaction, RecordSet } from './record-set.ts'

export interface FetchAt extends TopicPartition {
  readonly from: number
  readonly maxBytes: number
  readonly maxWaitMs: number
  /**
   * In a request of its own. Only the first partition of a request gets a batch larger than its `maxBytes`; the others
   * get nothing then, which looks like an empty log.
   */
  readonly alone?: boolean
}

export interface FetchedPartition {
  readonly partition: number
  readonly errorCode: number
  readonly highWatermark: string
  readonly lastStableOffset: string
  readonly abortedTransactions: readonly AbortedTransaction[] | null
  readonly messages: RecordSet
}

interface Waiting {
  readonly at: FetchAt
  /** Mono ms until which nothing new is no answer. */
  readonly untilMs: number
  resolve(data: FetchedPartition): void
  reject(error: unknown): void
}

interface FetchResponse {
  readonly responses: readonly { topicName: string; partitions: readonly FetchedPartition[] }[]
}

const readCommitted = 1

/** One long poll at most: what comes meanwhile waits for it. */
const maxPollMs = 100

/**
 * Fetches of many partitions as few requests. A broker answers one connection's requests one after the other, so twelve
 * long polls side by side would each wait for eleven others: all that wait on one broker share one request instead.
 */
export class FetchGroup {
  readonly #link: Link
  readonly #clock: Clock
  readonly #queues = new Map<number, Waiting[]>()
  readonly #busy = new Set<number>()

  constructor(link: Link, clock: Clock) {
    this.#link = link
    this.#clock = clock
  }

  /** The partition's part of a fetch response, error codes included, but for those that mean "ask somebody else". */
  async fetch(at: FetchAt): Promise<FetchedPartition> {
    const leaders = await this.#link.leaders(at.topic)
    const nodeId = leaders[at.partition]
    if (nodeId === undefined) throw missingTopic(`${at.topic} partition ${at.partition}`)
    if (nodeId < 0) throw library.createErrorFromCode(5)
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(nodeId) ?? []
      this.#queues.set(nodeId, queue)
      queue.push({ at, untilMs: this.#clock.mono() + at.maxWaitMs, resolve, reject })
      if (!this.#busy.has(nodeId)) void this.#drain(nodeId)
    })
  }

  async #drain(nodeId: number): Promise<void> {
    this.#busy.add(nodeId)
    // Fetches asked for in the same tick share the request.
    await Promise.resolve()
    for (let list = this.#take(nodeId); list.length > 0; list = this.#take(nodeId)) {
      try {
        const broker = await this.#link.node(nodeId)
        const again = await this.#request(broker, list)
        this.#queues.get(nodeId)?.push(...again)
      } catch (error) {
        for (const waiting of list) waiting.reject(error)
      }
    }
    this.#busy.delete(nodeId)
  }

  /** One per partition: a request can't name a partition twice. */
  #take(nodeId: number): Waiting[] {
    const taken = new Map<string, Waiting>()
    const rest: Waiting[] = []
    const queue = this.#queues.get(nodeId) ?? []
    const single = queue.findIndex(({ at }) => at.alone === true)
    if (single >= 0) return queue.splice(single, 1)
    for (const waiting of queue) {
      const key = `${waiting.at.partition}/${waiting.at.topic}`
      if (taken.has(key)) rest.push(waiting)
      else taken.set(key, waiting)
    }
    this.#queues.set(nodeId, rest)
    return [...taken.values()]
  }

  async #request(broker: Broker, list: readonly Waiting[]): Promise<Waiting[]> {
    const nowMs = this.#clock.mono()
    const topics = [...Map.groupBy(list, ({ at }) => at.topic)].map(([topic, waiting]) => ({
      topic,
      partitions: waiting.map(({ at }) => ({ partition: at.partition, fetchOffset: at.from, maxBytes: at.maxBytes })),
    }))
    const response = await this.#link.request<FetchResponse>(broker, 'Fetch', {
      isolationLevel: readCommitted,
      maxWaitTime: Math.floor(Math.max(0, Math.min(maxPollMs, ...list.map(({ untilMs }) => untilMs - nowMs)))),
      minBytes: 1,
      maxBytes: Math.min(
        64 * 1024 * 1024,
        list.reduce((sum, { at }) => sum + at.maxBytes, 0),
      ),
      topics,
    })
    const again: Waiting[] = []
    const afterMs = this.#clock.mono()
    for (const waiting of list) {
      const { at } = waiting
      const data = response.responses
        .find(
          ({ topicName, partitions }) => topicName === at.topic && partitions.some((p) => p.partition === at.partition),
        )
        ?.partitions.find((p) => p.partition === at.partition)
      // A throttled broker leaves partitions out (KIP-219).
      if (
        data === undefined ||
        (data.errorCode === 0 && data.messages.bytes === 0 && Number(data.lastStableOffset) <= at.from)
      ) {
        if (afterMs < waiting.untilMs) again.push(waiting)
        else if (data === undefined) waiting.reject(library.createErrorFromCode(7))
        else waiting.resolve(data)
      } else waiting.resolve(data)
    }
    return again
  }
}
