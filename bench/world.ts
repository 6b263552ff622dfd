import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { connectKafka } from '../src/app/connect-kafka.ts'
import type { BrokerDeps, RunningBroker } from '../src/broker/options.ts'
import { startBroker } from '../src/broker/start.ts'
import { loadConfig } from '../src/config.ts'
import { partitionOf } from '../src/core/partition.ts'
import { headerMap, type OutRecord } from '../src/core/record.ts'
import type { Subscription } from '../src/core/subscription.ts'
import { SubscriptionStore } from '../src/operations/subscription-store.ts'
import { applyPlan, readPlan } from '../src/operations/topic-actions.ts'
import { readTopicSpecs } from '../src/operations/topic-folder.ts'
import type { Kafka, Observer, Producer, TopicAdmin } from '../src/ports.ts'
import { newSigningSecret } from '../src/secrets/make-secret.ts'
import { clock } from './clock.ts'
import { Hooktide } from './hooktide.ts'
import { Receiver } from './receiver.ts'

const root = join(import.meta.dirname, '..')
/** What `npm start` gives its Node is part of the product. */
const startFlags = /(?<= )--\S+(?=.* bin\/hooktide\.js)/g
const npmStart: string = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.start
const productFlags = npmStart.match(startFlags) ?? []
const productEnv = Object.fromEntries(
  [...npmStart.matchAll(/\b([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name, value]),
)
const secretName = 'HOOKTIDE_SECRET_BENCH'
const silent: Observer = { log: () => undefined, count: () => undefined, time: () => undefined }

/** What all scenarios share: the broker and a folder for configurations and logs. */
export class Stage {
  readonly broker: RunningBroker
  readonly folder: string
  /** More flags for the Node of every Hooktide, for experiments: `--max-semi-space-size=16`. */
  readonly nodeFlags: readonly string[]

  private constructor(broker: RunningBroker, folder: string, nodeFlags: readonly string[]) {
    this.broker = broker
    this.folder = folder
    this.nodeFlags = nodeFlags
  }

  static async open(note: (line: string) => void, nodeFlags: readonly string[]): Promise<Stage> {
    const hidden = join(root, '.hooktide')
    const folder = join(hidden, 'bench')
    await mkdir(folder, { recursive: true })
    const deps: BrokerDeps = {
      clock,
      progress: note,
      system: { pid: process.pid, kill: (pid, signal) => void process.kill(pid, signal) },
    }
    const options = {
      dataDir: join(folder, 'kafka'),
      cacheDir: join(hidden, 'cache'),
      pomFile: join(root, 'broker', 'pom.xml'),
      env: process.env,
    }
    return new Stage(await startBroker(options, deps), folder, nodeFlags)
  }

  async close(): Promise<void> {
    await this.broker.stop()
    if (this.broker.owned) await rm(join(this.folder, 'kafka'), { recursive: true, force: true })
  }
}

export interface WorldOptions {
  readonly name: string
  /** Laid over the configuration, section by section. */
  readonly topics?: object
  readonly deliverer?: object
  readonly retry?: object
  readonly http?: object
  readonly api?: object
  /** Subscriptions; each takes events of the type that is its id. */
  readonly subscriptions: (origin: string) => readonly (Pick<
    Subscription,
    'id' | 'url' | 'ordering' | 'maxInFlight'
  > & {
    readonly types?: readonly string[]
  })[]
}

export interface Event {
  /** Of a subscription. */
  readonly id: string
  readonly key?: string
  readonly body: Buffer
}

/** One scenario's topics, subscriptions and endpoint. */
export class World {
  readonly receiver: Receiver
  readonly kafka: Kafka
  readonly prefix: string
  readonly #stage: Stage
  readonly #name: string
  readonly #config: object
  readonly #secret = newSigningSecret().reveal()
  readonly #close: () => Promise<void>
  readonly #producer: Producer
  readonly #partitions: number
  #starts = 0

  private constructor(parts: {
    stage: Stage
    name: string
    config: object
    prefix: string
    receiver: Receiver
    kafka: Kafka
    close(): Promise<void>
    partitions: number
  }) {
    this.#stage = parts.stage
    this.#name = parts.name
    this.#config = parts.config
    this.prefix = parts.prefix
    this.receiver = parts.receiver
    this.kafka = parts.kafka
    this.#close = parts.close
    this.#partitions = parts.partitions
    this.#producer = parts.kafka.producer()
  }

  static async open(stage: Stage, options: WorldOptions): Promise<World> {
    const prefix = `bench.${options.name}.${randomBytes(3).toString('hex')}.`
    const file = {
      kafka: { brokers: stage.broker.brokers.split(','), groupPrefix: prefix },
      topics: { prefix, events: [`${prefix}events`], ...options.topics },
      deliverer: { ...options.deliverer },
      retry: { ...options.retry },
      http: { allowHttp: true, allowPrivate: ['127.0.0.1'], ...options.http },
      api: { ...options.api },
      observe: { port: 0 },
    }
    const access = Object.entries(process.env).filter(([name]) => /^HOOKTIDE_(KAFKA_(SSL|SASL)|SECRETS)_/.test(name))
    const { config } = loadConfig({ env: Object.fromEntries(access), overrides: file })
    const connection = connectKafka(config, process.env, { clock, observer: silent })
    const receiver = await Receiver.start()
    const close = async () => {
      await connection.close()
      await receiver.close()
    }
    try {
      await createTopics(connection.admin, await readTopicSpecs(config.topics))
      const partitions = (await connection.kafka.partitions([`${prefix}events`])).get(`${prefix}events`) ?? 1
      const nowMs = Date.now()
      const store = new SubscriptionStore(connection.kafka, `${prefix}subscriptions`, clock)
      await store.read()
      await store.write(
        options.subscriptions(receiver.origin).map((given) => ({
          id: given.id,
          subscription: {
            v: 1,
            tenant: 'default',
            types: [given.id],
            status: 'active',
            secrets: [{ ref: `env:${secretName}` }],
            createdAtMs: nowMs,
            updatedAtMs: nowMs,
            ...given,
          },
        })),
      )
      return new World({
        ...{ stage, name: options.name, config: file, prefix, receiver, kafka: connection.kafka, close, partitions },
      })
    } catch (error) {
      await close()
      throw error
    }
  }

  /** Resolves when all are acknowledged. Without a key they go round the partitions. */
  async produce(events: readonly Event[]): Promise<void> {
    const topic = `${this.prefix}events`
    for (let from = 0; from < events.length; from += 2_000) {
      await this.#producer.send(
        events.slice(from, from + 2_000).map(
          ({ id, key, body }, i): OutRecord => ({
            topic,
            partition: key === undefined ? i % this.#partitions : partitionOf(key, this.#partitions),
            key: key ?? null,
            value: body,
            headers: headerMap([
              ['event-type', id],
              ['content-type', 'application/json'],
            ]),
          }),
        ),
      )
    }
  }

  /** As it stands in the table. */
  async subscription(id: string): Promise<Subscription> {
    const table = await new SubscriptionStore(this.kafka, `${this.prefix}subscriptions`, clock).read()
    const entry = table.get(id)
    if (entry?.ok !== true) throw new Error(`there is no subscription ${id}`)
    return entry.value
  }

  /** The product on this world's topics; stop it yourself. */
  start(options: { roles?: string; nodeFlags?: readonly string[]; workers?: number } = {}): Promise<Hooktide> {
    return Hooktide.start({
      folder: this.#stage.folder,
      name: `${this.#name}-${++this.#starts}`,
      config: this.#config,
      env: { ...productEnv, [secretName]: this.#secret, KAFKA_BROKERS: this.#stage.broker.brokers },
      ...options,
      nodeFlags: [...productFlags, ...this.#stage.nodeFlags, ...(options.nodeFlags ?? [])],
    })
  }

  async close(): Promise<void> {
    await this.#producer.close()
    await this.#close()
  }
}

async function createTopics(admin: TopicAdmin, specs: Awaited<ReturnType<typeof readTopicSpecs>>): Promise<void> {
  await applyPlan(admin, await readPlan(admin, specs), () => undefined)
}
