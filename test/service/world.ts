import { randomBytes } from 'node:crypto'
import { connectKafka } from '../../src/app/connect-kafka.ts'
import { pipelineSettings, topicNames } from '../../src/app/pipeline-settings.ts'
import { type Service, startService } from '../../src/app/service.ts'
import { type Config, loadConfig } from '../../src/config.ts'
import type { Attempt } from '../../src/core/attempt.ts'
import { partitionOf } from '../../src/core/partition.ts'
import { headerMap, type InRecord, type OutRecord } from '../../src/core/record.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { createObserver, type ProcessObserver } from '../../src/observe/observer.ts'
import { readTopic } from '../../src/operations/read-topic.ts'
import { SubscriptionStore } from '../../src/operations/subscription-store.ts'
import { applyPlan, readPlan } from '../../src/operations/topic-actions.ts'
import { readTopicSpecs } from '../../src/operations/topic-folder.ts'
import type { Clock, Kafka, Producer, TopicAdmin } from '../../src/ports.ts'
import { newSigningSecret } from '../../src/secrets/make-secret.ts'
import { realClock } from '../support/clock.ts'
import { addresses, notingObserver } from '../support/kafka.ts'
import { Endpoint } from './endpoint.ts'
import { Log, type LogLine } from './log.ts'

export type Env = Record<string, string>

/** Quick in everything: short tiers, small commit intervals, a session that just holds a POST. */
const quick: Env = {
  HOOKTIDE_TOPICS_LANES: '2',
  HOOKTIDE_TOPICS_TIERS: '[{name: retry-300ms, delay: 300ms}, {name: retry-1s, delay: 1s}]',
  HOOKTIDE_RETRY_BASE: '300ms',
  HOOKTIDE_RETRY_CAP: '2s',
  HOOKTIDE_RETRY_RETRY_AFTER_CAP: '5s',
  HOOKTIDE_ROUTER_COMMIT_EVERY: '200ms',
  HOOKTIDE_DELIVERER_COMMIT_EVERY: '200ms',
  HOOKTIDE_DELIVERER_COMMIT_MOVES_EVERY: '50ms',
  HOOKTIDE_DELIVERER_DRAIN: '5s',
  HOOKTIDE_HTTP_ALLOW_HTTP: 'true',
  HOOKTIDE_HTTP_ALLOW_PRIVATE: '127.0.0.1',
  HOOKTIDE_HTTP_TOTAL_TIMEOUT: '4s',
  HOOKTIDE_HTTP_CONNECT_TIMEOUT: '1s',
  HOOKTIDE_KAFKA_SESSION_TIMEOUT: '10s',
  HOOKTIDE_SHUTDOWN_DRAIN: '5s',
  HOOKTIDE_OBSERVE_PORT: '0',
}

let count = 0

export interface WorldOptions {
  readonly env?: Env
  readonly brokers?: string
  /** Makes the topics; true unless said otherwise. */
  readonly apply?: boolean
}

export interface Running {
  readonly service: Service
  readonly log: Log
  readonly observer: ProcessObserver
  /** What `onFatal` was called with. */
  readonly fatal: Error[]
  page(path: string): Promise<{ readonly status: number; readonly text: string }>
  stop(): Promise<void>
}

export interface Event {
  readonly id: string
  readonly type?: string
  readonly key?: string
  readonly tenant?: string
  readonly body?: string | Buffer
}

/** A Hooktide of one test file alone: prefix, topics, groups, endpoints, secret; and what is done to it. */
export class World {
  readonly env: Env
  readonly config: Config
  readonly endpoint: Endpoint
  readonly secret: string
  readonly kafka: Kafka
  readonly admin: TopicAdmin
  readonly topics: ReturnType<typeof topicNames>
  readonly running: Running[] = []
  readonly #close: () => Promise<void>
  #producer: Producer | null = null

  constructor(env: Env, endpoint: Endpoint, secret: string) {
    this.env = env
    this.endpoint = endpoint
    this.secret = secret
    this.config = loadConfig({ env }).config
    this.topics = topicNames(this.config)
    const { kafka, admin, close } = connectKafka(this.config, env, { clock: realClock, observer: notingObserver() })
    this.kafka = kafka
    this.admin = admin
    this.#close = close
  }

  get prefix(): string {
    return this.config.topics.prefix
  }

  async apply(): Promise<void> {
    await applyPlan(this.admin, await readPlan(this.admin, await readTopicSpecs(this.config.topics)), () => undefined)
  }

  /** The service in this process. */
  async up(options: { roles?: readonly string[]; env?: Env; clock?: Clock; log?: Log } = {}): Promise<Running> {
    const { roles = ['router', 'deliverer'], clock = realClock, log = new Log() } = options
    const env = { ...this.env, ...options.env }
    const observer = createObserver({ clock, stream: log, processMetrics: false, level: 'debug', lagEveryMs: 300 })
    const fatal: Error[] = []
    const service = await startService({
      config: loadConfig({ env }).config,
      roles: { router: roles.includes('router'), deliverer: roles.includes('deliverer') },
      projector: roles.includes('projector'),
      api: roles.includes('api'),
      env,
      clock,
      observer,
      onFatal: (error) => fatal.push(error),
    })
    const running: Running = {
      service,
      log,
      observer,
      fatal,
      async page(path) {
        const response = await fetch(`http://127.0.0.1:${service.port}${path}`, { signal: AbortSignal.timeout(10_000) })
        return { status: response.status, text: await response.text() }
      },
      async stop() {
        await service.stop()
        observer.close()
      },
    }
    this.running.push(running)
    return running
  }

  subscription(id: string, url: string, more: Partial<Subscription> = {}): Subscription {
    const nowMs = Date.now()
    return {
      v: 1,
      id,
      tenant: 'default',
      url,
      types: ['*'],
      ordering: 'none',
      status: 'active',
      secrets: [{ ref: 'env:HOOKTIDE_SECRET_TEST' }],
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      ...more,
    }
  }

  /** Written and readable when it resolves; null removes. */
  async subscribe(...subscriptions: (Subscription | { id: string; subscription: null })[]): Promise<void> {
    const store = new SubscriptionStore(this.kafka, this.topics.subscriptions, realClock)
    await store.read()
    await store.write(subscriptions.map((entry) => ('v' in entry ? { id: entry.id, subscription: entry } : entry)))
  }

  async produce(...events: Event[]): Promise<void> {
    await this.append(...events.map((event) => this.eventRecord(event)))
  }

  eventRecord({ id, type = 'order.paid', key, tenant, body = id }: Event): OutRecord {
    const headers = headerMap([
      ['event-id', id],
      ['event-type', type],
      ['content-type', 'text/plain'],
      ...(key === undefined ? [] : [['event-key', key] as const]),
      ...(tenant === undefined ? [] : [['event-tenant', tenant] as const]),
    ])
    return {
      topic: this.config.topics.events[0] as string,
      partition: partitionOf(key ?? id, this.eventPartitions),
      key: key ?? null,
      value: Buffer.from(body),
      headers,
    }
  }

  /** As `topics/events.yaml` and the environment say; read once. */
  eventPartitions = 1

  async append(...records: OutRecord[]): Promise<void> {
    this.#producer ??= this.kafka.producer()
    await this.#producer.send(records)
  }

  /** Everything a topic holds now, copied. */
  async read(topic: string): Promise<(InRecord & { partition: number })[]> {
    const reader = this.kafka.reader()
    try {
      const records: (InRecord & { partition: number })[] = []
      for await (const { partition, record } of readTopic(reader, topic)) {
        const copy = (bytes: Buffer | null) => (bytes === null ? null : Buffer.from(bytes))
        const headers = headerMap(Object.entries(record.headers).map(([name, value]) => [name, Buffer.from(value)]))
        records.push({ ...record, partition, key: copy(record.key), value: copy(record.value), headers })
      }
      return records
    } finally {
      await reader.close()
    }
  }

  async attempts(subscriptionId?: string): Promise<Attempt[]> {
    const all = (await this.read(this.topics.attempts)).map(({ value }) => JSON.parse(String(value)) as Attempt)
    return all.filter((attempt) => subscriptionId === undefined || attempt.subscriptionId === subscriptionId)
  }

  settings() {
    return pipelineSettings(this.config, { router: true, deliverer: true }, 1)
  }

  async close(): Promise<void> {
    await Promise.all(this.running.map((running) => running.stop()))
    await this.#producer?.close()
    await this.endpoint.stop()
    await this.#close()
  }
}

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const name = `svc-${process.pid}-${Date.now().toString(36)}-${++count}`
  const secret = newSigningSecret().reveal()
  const env = {
    ...quick,
    KAFKA_BROKERS: options.brokers ?? (await addresses()).join(','),
    HOOKTIDE_TOPICS_PREFIX: `${name}.`,
    HOOKTIDE_TOPICS_EVENTS: `${name}.events`,
    HOOKTIDE_KAFKA_GROUP_PREFIX: `${name}.`,
    HOOKTIDE_SECRET_TEST: secret,
    ...options.env,
  }
  const world = new World(env, await new Endpoint().start(), secret)
  if (options.apply !== false) {
    await world.apply()
    const topic = world.config.topics.events[0] as string
    world.eventPartitions = (await world.kafka.partitions([topic])).get(topic) as number
  }
  return world
}

/** Resolves when it holds; rejects with what was waited for, and what there was instead. */
export async function until<T>(
  what: string,
  fact: () => T | Promise<T>,
  options: { withinMs?: number; seen?: () => unknown } = {},
): Promise<Exclude<T, false | null | undefined>> {
  const { withinMs = 25_000 } = options
  const endMs = performance.now() + withinMs
  for (;;) {
    const value = await fact()
    if (value !== false && value !== null && value !== undefined) return value as Exclude<T, false | null | undefined>
    if (performance.now() > endMs) {
      const seen = options.seen === undefined ? '' : `; instead: ${JSON.stringify(options.seen(), null, 1)}`
      throw new Error(`not within ${withinMs} ms: ${what}${seen}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

export function randomBody(bytes: number): Buffer {
  return randomBytes(bytes)
}

export type { LogLine }
