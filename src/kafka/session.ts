import { HooktideError } from '../core/error.ts'
import type { OutRecord } from '../core/record.ts'
import type { Appended } from '../ports.ts'
import { type Chunk, halves } from './chunks.ts'
import type { KafkaClient } from './client.ts'
import { insist } from './deadline.ts'
import { encodeBatch, type ProducerIdentity } from './encode-batch.ts'
import { isTooLarge, missingTopic } from './errors.ts'
import type { Broker, Protocol } from './internals.ts'
import type { Link } from './link.ts'
import { library } from './load.ts'

interface ProduceResponse {
  readonly topics: readonly {
    topicName: string
    partitions: readonly { partition: number; errorCode: number; baseOffset: string; logAppendTime: string }[]
  }[]
}

/** What became of one chunk. */
export interface AppendedChunk {
  readonly records: readonly OutRecord[]
  readonly result: Appended | { readonly error: Error }
}

const produceVersion = 7
const maxSequence = 2 ** 31

/**
 * One producer id and its sequence numbers. The sequence number of a batch is fixed when it is first sent and the same
 * bytes go out on each repetition, so the broker drops the copy of a batch that had landed. After any failure the
 * session must be thrown away: nobody knows which of its numbers are taken (row 2: the stock client goes on with them,
 * and the broker swallows the next, different record as a repetition, and acknowledges it).
 */
export class ProducerSession {
  readonly link: Link
  readonly #client: KafkaClient
  readonly #transactionalId: string | null
  readonly #sequences = new Map<string, number>()
  #identity: ProducerIdentity | null = null

  constructor(client: KafkaClient, transactionalId: string | null) {
    this.#client = client
    this.#transactionalId = transactionalId
    this.link = client.link()
  }

  get identity(): ProducerIdentity {
    if (this.#identity === null) throw new HooktideError('internal', 'producer used before it had an id')
    return this.#identity
  }

  /** InitProducerId (KIP-98): with a transactional id it fences its former owner and ends what that one left open. */
  async init(deadlineMs: number): Promise<void> {
    const transactionalId = this.#transactionalId
    const { clock } = this.#client.deps
    const { producerId, producerEpoch } = await insist(
      clock,
      deadlineMs,
      'get a producer id',
      async () => {
        const broker =
          transactionalId === null ? await this.link.any() : await this.link.coordinator('transaction', transactionalId)
        return this.link.ask<{ producerId: string; producerEpoch: number }>(broker, 'InitProducerId', {
          transactionalId: transactionalId ?? undefined,
          transactionTimeout: this.#client.transactionTimeoutMs,
        })
      },
      (error) => this.link.forget(error, { coordinators: [`transaction:${transactionalId}`] }),
    )
    this.#identity = { producerId, producerEpoch, transactional: transactionalId !== null }
  }

  /**
   * Appends one round of chunks (one per partition), in parallel over the leaders. Never rejects: each chunk has its own
   * result. A chunk that the broker finds too large is halved until the single record at fault is alone.
   */
  async append(round: readonly Chunk[], deadlineMs: number): Promise<AppendedChunk[]> {
    const done: AppendedChunk[] = []
    let open: PreparedChunk[] = round.map((chunk) => this.#prepare(chunk))
    while (open.length > 0) {
      const next: PreparedChunk[] = []
      for (const [prepared, result] of await this.#settle(open, deadlineMs)) {
        const parts = 'error' in result && isTooLarge(result.error) ? halves(prepared.chunk) : null
        if (parts === null) {
          done.push({ records: prepared.chunk.records, result })
          const [following, ...waiting] = prepared.waiting
          if (following === undefined) continue
          if (!('error' in result)) next.push(this.#prepare(following, waiting))
          else for (const chunk of prepared.waiting) done.push({ records: chunk.records, result })
          continue
        }
        // Refused before it was numbered: the halves take the same numbers, the second one after the first.
        this.#sequences.set(keyOf(prepared.chunk), prepared.firstSequence)
        next.push(this.#prepare(parts[0], [parts[1], ...prepared.waiting]))
      }
      open = next
    }
    return done
  }

  #prepare(chunk: Chunk, waiting: readonly Chunk[] = []): PreparedChunk {
    const key = keyOf(chunk)
    const firstSequence = this.#sequences.get(key) ?? 0
    this.#sequences.set(key, (firstSequence + chunk.records.length) % maxSequence)
    const nowMs = this.#client.deps.clock.now()
    const batch = encodeBatch(chunk.records, chunk.sizes, this.identity, firstSequence, nowMs)
    return { chunk, firstSequence, batch, waiting }
  }

  /** Sends prepared chunks until each is acknowledged or has failed for good. */
  async #settle(chunks: readonly PreparedChunk[], deadlineMs: number): Promise<Map<PreparedChunk, Result>> {
    const results = new Map<PreparedChunk, Result>()
    const topics = new Set(chunks.map(({ chunk }) => chunk.topic))
    let last: unknown
    try {
      await insist(
        this.#client.deps.clock,
        deadlineMs,
        'produce',
        async () => {
          const perLeader = new Map<Broker, PreparedChunk[]>()
          for (const prepared of chunks) {
            if (results.has(prepared)) continue
            const broker = await this.link.leader(prepared.chunk.topic, prepared.chunk.partition)
            const list = perLeader.get(broker)
            if (list === undefined) perLeader.set(broker, [prepared])
            else list.push(prepared)
          }
          const sent = await Promise.allSettled(
            [...perLeader].map(([broker, list]) => this.#produce(broker, list, results, deadlineMs)),
          )
          for (const outcome of sent) if (outcome.status === 'rejected') throw outcome.reason
        },
        (error) => this.link.forget(error, { topics }),
      )
    } catch (error) {
      last = error
    }
    for (const prepared of chunks) {
      if (!results.has(prepared)) results.set(prepared, { error: asError(last) })
    }
    return results
  }

  async #produce(
    broker: Broker,
    list: readonly PreparedChunk[],
    results: Map<PreparedChunk, Result>,
    deadlineMs: number,
  ) {
    const leftMs = Math.max(1, Math.min(30_000, Math.floor(deadlineMs - this.#client.deps.clock.mono())))
    const response = await this.link.send<ProduceResponse>(broker, produceRequest(list, this.#transactionalId, leftMs))
    const byPartition = new Map(list.map((prepared) => [keyOf(prepared.chunk), prepared]))
    let repeat: Error | null = null
    for (const { topicName, partitions } of response.topics) {
      for (const { partition, errorCode, baseOffset, logAppendTime } of partitions) {
        const prepared = byPartition.get(keyOf({ topic: topicName, partition }))
        if (prepared === undefined) continue
        if (errorCode === 0) {
          const appendTimeMs = Number(logAppendTime)
          const count = prepared.chunk.records.length
          const result = { topic: topicName, partition, firstOffset: Number(baseOffset), count }
          results.set(prepared, { ...result, appendTimeMs: appendTimeMs < 0 ? null : appendTimeMs })
          continue
        }
        const error =
          errorCode === 3
            ? missingTopic(topicName)
            : Object.assign(library.createErrorFromCode(errorCode), { topic: topicName })
        if (isPassing(error)) repeat = error
        else results.set(prepared, { error })
      }
    }
    if (repeat !== null) throw repeat
  }

  /** Cuts the connections: nothing of this session can arrive later. */
  close(): void {
    this.link.close()
  }
}

type Result = AppendedChunk['result']

interface PreparedChunk {
  readonly chunk: Chunk
  readonly firstSequence: number
  readonly batch: Buffer
  /** Further parts of a split chunk, to be sent one after the other once this one is acknowledged. */
  readonly waiting: readonly Chunk[]
}

function isPassing(error: Error): boolean {
  return error instanceof HooktideError || passing.has((error as Error & { type: string }).type)
}

const passing: ReadonlySet<string> = new Set([
  'NOT_LEADER_FOR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'REPLICA_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'KAFKA_STORAGE_ERROR',
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'REQUEST_TIMED_OUT',
  'NETWORK_EXCEPTION',
  'CONCURRENT_TRANSACTIONS',
])

function keyOf(at: { topic: string; partition: number }): string {
  return `${at.partition}/${at.topic}`
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** Produce v7 (Kafka 2.1+), acks all. */
function produceRequest(
  list: readonly PreparedChunk[],
  transactionalId: string | null,
  timeoutMs: number,
): Protocol<ProduceResponse> {
  const stock = library.requests.Produce as {
    protocol(at: { version: number }): (args: object) => Protocol<ProduceResponse>
  }
  const { response } = stock.protocol({ version: produceVersion })({ topicData: [] })
  const byTopic = Map.groupBy(list, ({ chunk }) => chunk.topic)
  return {
    request: {
      apiKey: 0,
      apiVersion: produceVersion,
      apiName: 'Produce',
      expectResponse: () => true,
      encode: async () => {
        const bytes = list.reduce((sum, { batch }) => sum + batch.length + 64, 256)
        const out = new library.Encoder(bytes)
          .writeString(transactionalId)
          .writeInt16(-1)
          .writeInt32(timeoutMs)
          .writeInt32(byTopic.size)
        for (const [topic, chunks] of byTopic) {
          out.writeString(topic).writeInt32(chunks.length)
          for (const { chunk, batch } of chunks)
            out.writeInt32(chunk.partition).writeInt32(batch.length).writeBuffer(batch)
        }
        return out
      },
    },
    response: { decode: response.decode, parse: async (data) => data },
  }
}
