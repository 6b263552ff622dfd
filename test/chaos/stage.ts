import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { connectKafka } from '../../src/app/connect-kafka.ts'
import type { Config } from '../../src/config.ts'
import { groupNames, topicNames } from '../../src/operations/names.ts'
import { SubscriptionStore } from '../../src/operations/subscription-store.ts'
import { applyPlan, readPlan } from '../../src/operations/topic-actions.ts'
import { readTopicSpecs } from '../../src/operations/topic-folder.ts'
import type { Kafka, TopicAdmin } from '../../src/ports.ts'
import { newSigningSecret } from '../../src/secrets/make-secret.ts'
import { randomStream } from '../sim/random.ts'
import { realClock } from '../support/clock.ts'
import { Fleet, type Outage } from './fleet.ts'
import type { PlannedSubscription, PlayKind } from './plan.ts'
import { EventSource } from './produce.ts'
import { RemoteReceiver } from './remote-receiver.ts'
import { configOf, secretName } from './setting.ts'
import { Watch } from './watch.ts'

export interface StageOptions {
  readonly kind: PlayKind
  readonly seed: number
  readonly records: number
  readonly brokers: string
  /** Null: the broker is somebody else's and is left alone. */
  readonly broker: Outage | null
  /** Configurations and logs of the workers. */
  readonly folder: string
  readonly subscriptions: readonly PlannedSubscription[]
  readonly eventsPerSecond: number
}

/** What a round is played on: a topology, a receiver, workers and watchers of its own. */
export interface Stage {
  readonly prefix: string
  readonly config: Config
  readonly kafka: Kafka
  readonly admin: TopicAdmin
  readonly receiver: RemoteReceiver
  readonly fleet: Fleet
  readonly watch: Watch
  readonly source: EventSource
  /** Nothing survives, whatever happened. */
  close(): Promise<void>
}

const nobody = { log() {}, count() {}, time() {} }

export async function openStage(options: StageOptions): Promise<Stage> {
  const { kind, seed, records, brokers, folder, broker } = options
  mkdirSync(folder, { recursive: true })
  const prefix = `chaos.${kind}-${seed}-${randomBytes(3).toString('hex')}.`
  const config = configOf(prefix, brokers)
  const topics = topicNames(config)
  const { kafka, admin, close } = connectKafka(config, {}, { clock: realClock, observer: nobody })
  const receiver = new RemoteReceiver(kind, seed, records)
  const secret = newSigningSecret().reveal()
  const fleet = new Fleet({ folder, prefix, brokers, secret, broker, random: randomStream(seed, 'fleet') })
  const lanes = Array.from({ length: config.topics.lanes }, (_, partition) => partition)
  const watch = new Watch(kafka, {
    attempts: topics.attempts,
    group: groupNames(config).deliverer,
    sources: [topics.deliveries, ...topics.tiers.map(({ topic }) => topic)].flatMap((topic) =>
      lanes.map((partition) => ({ topic, partition })),
    ),
  })
  const end = async () => {
    fleet.destroy()
    await watch.stop()
    receiver.stop()
    await close()
  }
  try {
    await applyPlan(admin, await readPlan(admin, await readTopicSpecs(config.topics)), () => {})
    const store = new SubscriptionStore(kafka, topics.subscriptions, realClock)
    await subscribe(options.subscriptions, await receiver.base, store)
    const topic = topics.events[0] as string
    const partitions = (await kafka.partitions([topic])).get(topic) ?? 1
    const source = new EventSource(kafka, { topic, partitions, perSecond: options.eventsPerSecond })
    watch.start()
    return { prefix, config, kafka, admin, receiver, fleet, watch, source, close: end }
  } catch (error) {
    await end()
    throw error
  }
}

async function subscribe(
  planned: readonly PlannedSubscription[],
  base: string,
  store: SubscriptionStore,
): Promise<void> {
  const nowMs = Date.now()
  await store.read()
  await store.write(
    planned.map(({ id, ordering, types, about, maxInFlight }) => ({
      id,
      subscription: {
        v: 1,
        id,
        tenant: 'default',
        url: `${base}/${id}`,
        types,
        ordering,
        status: 'active',
        secrets: [{ ref: `env:${secretName}` }],
        ...(maxInFlight === undefined ? {} : { maxInFlight }),
        description: about,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      },
    })),
  )
}
