import { HooktideError, messageOf } from '../core/error.ts'
import type { OutRecord } from '../core/record.ts'
import type { Appended, Producer } from '../ports.ts'
import { rounds } from './chunks.ts'
import type { KafkaClient } from './client.ts'
import { isTooLarge, translate } from './errors.ts'
import { type AppendedChunk, ProducerSession } from './session.ts'

interface Send {
  readonly records: readonly OutRecord[]
  readonly deadlineMs: number
  readonly appended: Appended[]
  left: number
  resolve(appended: readonly Appended[]): void
  reject(error: HooktideError): void
}

/** Concurrent sends share requests up to about this many records' bytes; more only adds waiting to the first of them. */
const maxRequestBytes = 4 * 1024 * 1024

/**
 * Plain producer: acks all, idempotent, one request in flight (per leader), concurrent sends batched, chunked by bytes.
 * No linger: what arrives while a request is out goes with the next one.
 *
 * After any rejection the session (producer id, connections) is thrown away and everything queued behind it is rejected
 * `producer.failed`: it may have been meant to come after what failed, and the old id's sequence numbers are unknown.
 * The next send opens a new session. Rejects `record.too-large`, `topic.missing`, `broker.unauthorized`,
 * `broker.unauthenticated`, `producer.closed`; else `producer.failed` (some of it may be in the log).
 */
export class KafkaProducer implements Producer {
  readonly #client: KafkaClient
  #queue: Send[] = []
  #session: ProducerSession | null = null
  #running: Promise<void> | null = null
  #closed = false

  constructor(client: KafkaClient) {
    this.#client = client
  }

  send(records: readonly OutRecord[]): Promise<readonly Appended[]> {
    if (this.#closed) return Promise.reject(closedError())
    if (records.length === 0) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const deadlineMs = this.#client.deps.clock.mono() + this.#client.deadlineMs
      this.#queue.push({ records, deadlineMs, appended: [], left: records.length, resolve, reject })
      this.#running ??= this.#run()
    })
  }

  /** Waits for what is queued (within its deadlines), then closes. Sends from now on reject `producer.closed`. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#running
    this.#session?.close()
    this.#session = null
  }

  async #run(): Promise<void> {
    // A turn of the event loop: sends of the same tick belong together.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#take()
      try {
        const failure = await this.#sendBatch(batch)
        if (failure !== null) this.#failAll(batch, failure)
      } catch (error) {
        this.#failAll(batch, error)
      }
    }
    // In the same step as the look at the queue: a send in between would wait for ever.
    this.#running = null
  }

  #take(): Send[] {
    const batch: Send[] = []
    let bytes = 0
    for (const send of this.#queue) {
      for (const record of send.records) bytes += (record.value?.length ?? 0) + 256
      if (batch.length > 0 && bytes > maxRequestBytes) break
      batch.push(send)
    }
    this.#queue = this.#queue.slice(batch.length)
    return batch
  }

  /** Resolves the sends whose records are all in; the error of the others, if any. */
  async #sendBatch(batch: readonly Send[]): Promise<unknown> {
    // The one that has waited longest decides: behind a rejection nothing goes on anyway.
    const deadlineMs = Math.min(...batch.map((send) => send.deadlineMs))
    const plan = rounds(batch.flatMap((send) => send.records))
    if (this.#session === null) {
      const session = new ProducerSession(this.#client, null)
      this.#session = session
      await session.init(deadlineMs)
    }
    const owners = ownersOf(batch)
    let failure: unknown = null
    for (const round of plan) {
      for (const chunk of await (this.#session as ProducerSession).append(round, deadlineMs)) {
        if ('error' in chunk.result) failure ??= this.#chunkFailed(chunk, owners, chunk.result.error)
        else credit(chunk.records, chunk.result, owners)
      }
      if (failure !== null) return failure
    }
    return null
  }

  /** A record too large for its topic is its own sender's fault alone; the others can send again. */
  #chunkFailed(chunk: AppendedChunk, owners: ReadonlyMap<OutRecord, Send>, error: Error): unknown {
    const record = chunk.records[0]
    if (isTooLarge(error) && record !== undefined) {
      const owner = owners.get(record)
      if (owner !== undefined) {
        owner.left = Number.POSITIVE_INFINITY
        owner.reject(translate(error, { operation: 'produce', topic: record.topic }))
      }
    }
    return Object.assign(error, { topic: record?.topic })
  }

  #failAll(batch: readonly Send[], cause: unknown): void {
    this.#session?.close()
    this.#session = null
    const topic = (cause as { topic?: string }).topic
    const error = rejection(cause, topic)
    for (const send of batch) if (send.left > 0) send.reject(error)
    const queued = this.#queue
    this.#queue = []
    for (const send of queued) {
      send.reject(new HooktideError('producer.failed', `An earlier send failed: ${messageOf(error)}`, { cause: error }))
    }
    this.#client.deps.observer.log('warn', 'producer.recreated', {
      code: error.code,
      message: error.message,
      failed: batch.length + queued.length,
    })
  }
}

/** Codes that tell a sender what to change; everything else is "try again". */
const telling: ReadonlySet<string> = new Set([
  'topic.missing',
  'broker.unauthorized',
  'broker.unauthenticated',
  'broker.incompatible',
  'producer.closed',
])

function rejection(cause: unknown, topic: string | undefined): HooktideError {
  const translated = translate(cause, { operation: 'produce', topic })
  if (telling.has(translated.code)) return translated
  return new HooktideError('producer.failed', `Records may not have been written: ${translated.message}`, { cause })
}

function ownersOf(batch: readonly Send[]): Map<OutRecord, Send> {
  const owners = new Map<OutRecord, Send>()
  for (const send of batch) for (const record of send.records) owners.set(record, send)
  return owners
}

/** Each run of one sender's records in an acknowledged chunk is an `Appended` of that sender. */
function credit(records: readonly OutRecord[], result: Appended, owners: ReadonlyMap<OutRecord, Send>): void {
  let from = 0
  while (from < records.length) {
    const owner = owners.get(records[from] as OutRecord) as Send
    let to = from + 1
    while (to < records.length && owners.get(records[to] as OutRecord) === owner) to++
    owner.appended.push({ ...result, firstOffset: result.firstOffset + from, count: to - from })
    owner.left -= to - from
    if (owner.left === 0) owner.resolve(owner.appended)
    from = to
  }
}

function closedError(): HooktideError {
  return new HooktideError('producer.closed', 'The producer is closed')
}
