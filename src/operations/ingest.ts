import { createHash } from 'node:crypto'
import type { Config } from '../config.ts'
import { HooktideError, messageOf } from '../core/error.ts'
import { parseEvent } from '../core/event-format.ts'
import { partitionOf } from '../core/partition.ts'
import { headerMap, type OutRecord, recordBytes } from '../core/record.ts'
import type { Problem } from '../core/result.ts'
import type { Objects } from '../ports/objects.ts'
import type { Appended, Clock, Kafka, Producer } from '../ports.ts'
import { claimEvent } from './claim-event.ts'
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
  readonly #objects: Objects | null
  readonly #clock: Clock
  readonly #partitions = new Map<string, number>()
  #waitingBytes = 0
  #spread = 0

  /** `objects`: where bodies go that are too large for a record; null: they are refused. */
  constructor({
    kafka,
    config,
    objects,
    clock,
  }: {
    readonly kafka: Kafka
    readonly config: Config
    readonly objects: Objects | null
    readonly clock: Clock
  }) {
    this.#objects = objects
    this.#clock = clock
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
      const stored = await this.#store(made.map(({ record }) => record))
      const appended = await this.#producer.send(stored)
      return placed(made, appended, topic)
    } finally {
      this.#waitingBytes -= bytes
    }
  }

  async target(topic: string | null) {
    const name = this.topicOf(topic)
    const { maxEventBytes: maxBytes, maxHeaders } = this.#config.router
    const maxLargeBytes = this.#objects === null ? null : this.#config.objects.maxBytes
    return { topic: name, partitions: await this.#countOf(name), limits: { maxBytes, maxHeaders }, maxLargeBytes }
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

  /** Bodies first: a record that is acknowledged must not point to nothing. One after the other, as they are large. */
  async #store(records: readonly OutRecord[]): Promise<OutRecord[]> {
    const stored: OutRecord[] = []
    for (const record of records) {
      const body = record.value ?? Buffer.alloc(0)
      if (this.#objects === null || body.length <= this.#config.router.maxEventBytes) stored.push(record)
      else
        stored.push(
          await claimEvent(record, body, this.#objects, this.#clock.now()).catch((cause: unknown) => {
            if (cause instanceof HooktideError) throw cause
            throw new HooktideError('busy', `the object store can not take the body: ${messageOf(cause)}`, { cause })
          }),
        )
    }
    return stored
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
    const { maxEventBytes } = this.#config.router
    const { maxBytes: maxClaimBytes } = this.#config.objects
    if (this.#objects !== null && value.length > maxEventBytes && input.type === undefined)
      throw invalid('event.invalid', at.field, `a body above ${maxEventBytes} bytes needs its type beside it`)
    const parsed = parseEvent(
      { offset: 0, timestampMs: 0, key: key === null ? null : Buffer.from(key), value, headers },
      { topic: at.topic, partition: 0 },
      { maxBytes: this.#objects === null ? maxEventBytes : maxClaimBytes, maxHeaders: this.#config.router.maxHeaders },
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
