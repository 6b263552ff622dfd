import { createHash } from 'node:crypto'
import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import { parseEvent } from '../core/event-format.ts'
import { partitionOf } from '../core/partition.ts'
import { headerMap, type OutRecord, recordBytes } from '../core/record.ts'
import type { Problem } from '../core/result.ts'
import type { Appended, Kafka, Producer } from '../ports.ts'
import type { Caller } from './contract.ts'
import { topicNames } from './names.ts'
import { partitionsOf } from './read-topic.ts'

/** One event as it is handed in. Without a type the body must say what it is: an envelope, or a structured CloudEvent. */
export interface EventInput {
  readonly type?: string | undefined
  readonly id?: string | undefined
  readonly tenant?: string | undefined
  /** Ordering key. */
  readonly key?: string | undefined
  readonly contentType?: string | undefined
  readonly traceparent?: string | undefined
  /** The body as a JSON value, or its bytes in base64; one of the two. */
  readonly data?: unknown
  readonly dataBase64?: string | undefined
}

export interface AcceptedEvent {
  /** What deliveries and attempts name it by. */
  readonly eventId: string
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

/** Most that wait for Kafka at a time; more is refused at the door, so that a slow broker does not fill the memory. */
const maxWaitingBytes = 32 * 1024 * 1024

/**
 * Events into the events topic. Resolves when Kafka has acknowledged every one of them with acks=all. Calls at the same
 * time share requests (the producer batches what comes while one is out).
 */
export class Ingest {
  readonly #kafka: Kafka
  readonly #config: Config
  readonly #producer: Producer
  readonly #partitions = new Map<string, number>()
  #waitingBytes = 0
  #spread = 0

  constructor({ kafka, config }: { readonly kafka: Kafka; readonly config: Config }) {
    this.#kafka = kafka
    this.#config = config
    this.#producer = kafka.producer()
  }

  /** `topic` null: the first events topic. The same idempotency key gives the same event ids, so the same deliveries. */
  async accept(
    inputs: readonly EventInput[],
    caller: Caller,
    options: { readonly topic: string | null; readonly idempotencyKey: string | null },
  ): Promise<readonly AcceptedEvent[]> {
    const topic = this.topicOf(options.topic)
    const count = await this.#countOf(topic)
    const made = inputs.map((input, i) => {
      const field = inputs.length === 1 ? '' : `events[${i}]`
      const derived = options.idempotencyKey === null ? null : derivedId(caller, options.idempotencyKey, i)
      return this.#record(input, caller, { topic, count, derived, field })
    })
    const bytes = made.reduce((sum, { record }) => sum + recordBytes({ ...record, key: null }), 0)
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > maxWaitingBytes) {
      throw new HooktideError('busy', 'too much waits for Kafka already; nothing was taken', {
        remedy: 'Send it again in a moment.',
      })
    }
    this.#waitingBytes += bytes
    try {
      const appended = await this.#producer.send(made.map(({ record }) => record))
      return placed(made, appended, topic)
    } finally {
      this.#waitingBytes -= bytes
    }
  }

  async target(topic: string | null) {
    const name = this.topicOf(topic)
    const { maxEventBytes: maxBytes, maxHeaders } = this.#config.router
    return { topic: name, partitions: await this.#countOf(name), limits: { maxBytes, maxHeaders } }
  }

  /** Events topics only: whoever may hand in events must not write into the others. */
  topicOf(given: string | null): string {
    const { events } = topicNames(this.#config)
    if (given === null) return events[0] as string
    if (events.includes(given)) return given
    throw new HooktideError('usage', 'that is no events topic of this service', {
      problems: [
        { field: 'topic', value: given.slice(0, 60), message: 'is unknown', remedy: `use ${events.join(' or ')}` },
      ],
    })
  }

  close(): Promise<void> {
    return this.#producer.close()
  }

  async #countOf(topic: string): Promise<number> {
    const known = this.#partitions.get(topic)
    if (known !== undefined) return known
    const count = await partitionsOf(this.#kafka, topic)
    this.#partitions.set(topic, count)
    return count
  }

  #record(
    input: EventInput,
    caller: Caller,
    at: { readonly topic: string; readonly count: number; readonly derived: string | null; readonly field: string },
  ): { readonly record: OutRecord; readonly eventId: string | null } {
    const value = bodyOf(input, at.field)
    const headers = headerMap()
    const put = (name: string, text: string | undefined) => {
      if (text !== undefined) headers[name] = Buffer.from(text)
    }
    if (input.type !== undefined) {
      put('event-type', input.type)
      put('event-id', input.id ?? at.derived ?? undefined)
      put('event-tenant', input.tenant ?? caller.tenant ?? undefined)
    }
    put('content-type', input.contentType)
    put('traceparent', input.traceparent)
    const key = input.key ?? null
    const parsed = parseEvent(
      { offset: 0, timestampMs: 0, key: key === null ? null : Buffer.from(key), value, headers },
      { topic: at.topic, partition: 0 },
      { maxBytes: this.#config.router.maxEventBytes, maxHeaders: this.#config.router.maxHeaders },
    )
    if (!parsed.ok) {
      const code = parsed.code === 'too-large' ? 'record.too-large' : 'event.invalid'
      throw invalid(code, at.field, parsed.reason)
    }
    const { id, tenant, orderingKey, identity } = parsed.value
    if (caller.tenant !== null && tenant !== caller.tenant) {
      throw new HooktideError('forbidden', `this caller hands in events of tenant ${caller.tenant} only`, {
        problems: [{ field: path(at.field, 'tenant'), value: '', message: 'is not yours', remedy: 'leave it out' }],
      })
    }
    const given = identity.t === 'position' ? null : id
    const by = orderingKey ?? given
    // What has no key and no id goes round; what has an id goes where it went before, should it come again.
    const partition = by === null ? this.#spread++ % at.count : partitionOf(by, at.count)
    return { record: { topic: at.topic, partition, key: orderingKey, value, headers }, eventId: given }
  }
}

function bodyOf({ data, dataBase64 }: EventInput, field: string): Buffer {
  if ((data === undefined) === (dataBase64 === undefined))
    throw invalid('event.invalid', field, 'give data or dataBase64, one of the two')
  if (dataBase64 === undefined) return Buffer.from(JSON.stringify(data))
  const bytes = Buffer.from(dataBase64, 'base64')
  if (bytes.toString('base64').replace(/=+$/, '') !== dataBase64.replace(/=+$/, ''))
    throw invalid('event.invalid', path(field, 'dataBase64'), 'is not base64')
  return bytes
}

/** Of a tenant's keys another tenant's say nothing. Long enough that nobody meets another's by chance. */
function derivedId(caller: Caller, key: string, index: number): string {
  const hash = createHash('sha256').update(JSON.stringify([caller.tenant, key, index]))
  return `idem_${hash.digest('base64url')}`
}

/** A producer keeps the order within a partition: the n-th record of one is the n-th offset. */
function placed(
  made: readonly { readonly record: OutRecord; readonly eventId: string | null }[],
  appended: readonly Appended[],
  topic: string,
): AcceptedEvent[] {
  const offsets = new Map<number, number[]>()
  for (const { partition, firstOffset, count } of appended) {
    const list = offsets.get(partition) ?? []
    for (let i = 0; i < count; i++) list.push(firstOffset + i)
    offsets.set(partition, list)
  }
  const taken = new Map<number, number>()
  return made.map(({ record: { partition }, eventId }) => {
    const n = taken.get(partition) ?? 0
    taken.set(partition, n + 1)
    const offset = offsets.get(partition)?.[n] ?? -1
    return { eventId: eventId ?? `${topic}/${partition}/${offset}`, topic, partition, offset }
  })
}

function path(field: string, name: string): string {
  return field === '' ? name : `${field}.${name}`
}

function invalid(code: 'event.invalid' | 'record.too-large', field: string, message: string): HooktideError {
  const problems: Problem[] = [{ field: field === '' ? 'event' : field, value: '', message, remedy: '' }]
  return new HooktideError(code, `the event can not be taken: ${message}`, { problems })
}
