import { HooktideError } from '../core/error.ts'
import type { TopicConfig, TopicState } from '../core/topic-spec.ts'
import type { GroupState, NewTopic, TopicAdmin } from '../ports.ts'
import { type Asked, adminError, adminFailure } from './admin-errors.ts'
import { listGroups } from './admin-groups.ts'
import type { KafkaClient } from './client.ts'
import { insist, sleep } from './deadline.ts'
import { incrementalAlter } from './incremental-alter.ts'
import type { Broker } from './internals.ts'
import type { Link } from './link.ts'
import { library } from './load.ts'

interface MetadataResponse {
  readonly brokers: readonly { nodeId: number; host: string; port: number }[]
  readonly clusterId: string
  readonly controllerId: number
  readonly topicMetadata: readonly {
    topicErrorCode: number
    topic: string
    partitionMetadata: readonly { leader: number; replicas: readonly number[] }[]
  }[]
}

interface ConfigsResponse {
  readonly resources: readonly {
    errorCode: number
    resourceName: string
    configEntries: readonly { configName: string; configValue: string | null; configSource: number }[]
  }[]
}

interface TopicErrors {
  readonly topicErrors: readonly { topic: string; errorCode: number; errorMessage: string | null }[]
}

const unknownTopic = 3
const leaderNotAvailable = 5
const topicExists = 36
const requestTimedOut = 7
const notController = 41
const topicDenied = 29
const topicResource = 2

/**
 * Administration over our own connections: kafkajs's admin client throws away the broker's sentences, reports the first
 * of several errors without its topic, and can only replace a topic's settings as a whole.
 */
export class KafkaTopicAdmin implements TopicAdmin {
  readonly #link: Link
  readonly #client: KafkaClient

  constructor(client: KafkaClient) {
    this.#client = client
    this.#link = client.link()
  }

  async cluster() {
    const startMs = this.#client.deps.clock.mono()
    const { brokers, clusterId } = await this.#metadata([], {
      operation: 'list brokers',
      acl: 'DESCRIBE on the cluster',
    })
    const roundTripMs = this.#client.deps.clock.mono() - startMs
    return { id: clusterId, brokers: brokers.map(({ host, port }) => `${host}:${port}`), roundTripMs }
  }

  async describe(topics: readonly string[]): Promise<ReadonlyMap<string, TopicState>> {
    const states = new Map<string, TopicState>()
    if (topics.length === 0) return states
    const { topicMetadata } = await this.#metadata(topics, {
      operation: 'describe topics',
      acl: 'DESCRIBE on the topics',
    })
    const found = topicMetadata.filter(({ topic, topicErrorCode: code }) => {
      if (code === unknownTopic) return false
      if (code > 0 && code !== leaderNotAvailable) throw adminError(code, describing(topic))
      return true
    })
    const configs = await this.#configs(found.map(({ topic }) => topic))
    for (const { topic, partitionMetadata } of found) {
      const replication = Math.min(...partitionMetadata.map(({ replicas }) => replicas.length))
      const known = configs.get(topic)
      if (known !== undefined) states.set(topic, { partitions: partitionMetadata.length, replication, configs: known })
    }
    return states
  }

  async create(topics: readonly NewTopic[]): Promise<void> {
    if (topics.length === 0) return
    const args = {
      topics: topics.map(({ topic, partitions, replication, configs }) => ({
        topic,
        numPartitions: partitions,
        replicationFactor: replication,
        configEntries: Object.entries(configs).map(([name, value]) => ({ name, value })),
      })),
      timeout: 15_000,
      validateOnly: false,
    }
    const operation = 'create topics'
    const { topicErrors } = await this.#ask(
      { operation, acl: 'CREATE on the topics' },
      async () => this.#link.request<TopicErrors>(await this.#controller(), 'CreateTopics', args),
      (answer) => answer.topicErrors.some(({ errorCode }) => errorCode === notController),
    )
    for (const { topic, errorCode, errorMessage } of topicErrors) {
      // Timed out: the brokers go on with it, and below we wait for the result.
      if (errorCode === 0 || errorCode === topicExists || errorCode === requestTimedOut) continue
      const acl = `CREATE on topic ${topic}`
      throw adminError(errorCode, { operation: 'create topic', topic, acl, detail: errorMessage })
    }
    await this.#untilLed(topics.map(({ topic }) => topic))
  }

  async alterConfigs(topic: string, configs: Readonly<Record<string, string>>): Promise<void> {
    const asked = { operation: 'alter the settings of topic', topic, acl: `ALTER_CONFIGS on topic ${topic}` }
    const result = await this.#ask(
      asked,
      async () => this.#link.send(await this.#controller(), incrementalAlter(topic, configs)),
      ({ errorCode }) => errorCode === notController,
    )
    if (result.errorCode !== 0) throw adminError(result.errorCode, { ...asked, detail: result.errorMessage })
    await this.#untilSet(topic, configs)
  }

  async grow(topic: string, partitions: number): Promise<void> {
    const asked = { operation: 'add partitions to topic', topic, acl: `ALTER on topic ${topic}` }
    const args = { topicPartitions: [{ topic, count: partitions }], timeout: 15_000, validateOnly: false }
    const answer = await this.#ask(
      asked,
      async () => this.#link.request<TopicErrors>(await this.#controller(), 'CreatePartitions', args),
      ({ topicErrors }) => topicErrors[0]?.errorCode === notController,
    )
    const error = answer.topicErrors[0]
    if (error !== undefined && error.errorCode !== 0) {
      throw adminError(error.errorCode, { ...asked, detail: error.errorMessage })
    }
    await this.#untilLed([topic], partitions)
  }

  async groups(prefix: string): Promise<readonly GroupState[]> {
    const asked = { operation: 'list groups', acl: 'DESCRIBE on the cluster or the groups' }
    const { brokers } = await this.#metadata([], asked)
    return this.#ask(asked, () =>
      listGroups(
        this.#link,
        brokers.map(({ nodeId }) => nodeId),
        prefix,
      ),
    )
  }

  async close(): Promise<void> {
    await this.#link.close()
  }

  async #metadata(topics: readonly string[], asked: Asked): Promise<MetadataResponse> {
    return this.#ask(asked, async () => {
      // Tells the link where the brokers are.
      await this.#link.refresh([])
      const broker = await this.#link.any()
      return this.#link.request<MetadataResponse>(broker, 'Metadata', { topics, allowAutoTopicCreation: false })
    })
  }

  async #controller(): Promise<Broker> {
    const { controllerId } = await this.#metadata([], {
      operation: 'find the controller',
      acl: 'DESCRIBE on the cluster',
    })
    return this.#link.node(controllerId)
  }

  async #configs(topics: readonly string[]): Promise<Map<string, Map<string, TopicConfig>>> {
    const result = new Map<string, Map<string, TopicConfig>>()
    if (topics.length === 0) return result
    const resources = topics.map((name) => ({ type: topicResource, name, configNames: [] }))
    const answer = await this.#ask(
      { operation: 'read the settings of topics', acl: 'DESCRIBE_CONFIGS on the topics' },
      async () =>
        this.#link.request<ConfigsResponse>(await this.#link.any(), 'DescribeConfigs', {
          resources,
          includeSynonyms: false,
        }),
    )
    for (const { errorCode, resourceName: topic, configEntries } of answer.resources) {
      // Deleted between the two questions.
      if (errorCode === unknownTopic) continue
      const operation = 'read the settings of topic'
      if (errorCode !== 0) throw adminError(errorCode, { operation, topic, acl: `DESCRIBE_CONFIGS on topic ${topic}` })
      const entries = configEntries.map(({ configName, configValue, configSource }) => {
        const source = configSource === 1 ? 'topic' : configSource === 5 ? 'default' : 'broker'
        return [configName, { value: configValue, source } satisfies TopicConfig] as const
      })
      result.set(topic, new Map(entries))
    }
    return result
  }

  /** A new topic is known to its brokers a moment after its creation. */
  async #untilLed(topics: readonly string[], partitions = 1): Promise<void> {
    const { clock } = this.#client.deps
    const deadlineMs = clock.mono() + this.#client.deadlineMs
    for (;;) {
      const { topicMetadata } = await this.#metadata(topics, {
        operation: 'describe topics',
        acl: 'DESCRIBE on the topics',
      })
      const led = topicMetadata.every(
        ({ topicErrorCode: code, partitionMetadata: all }) =>
          code === 0 && all.length >= partitions && all.every(({ leader }) => leader >= 0),
      )
      if (led) return
      const refused = topicMetadata.find(({ topicErrorCode: code }) => code === topicDenied)
      if (refused !== undefined) throw adminError(topicDenied, describing(refused.topic))
      if (clock.mono() > deadlineMs) {
        throw new HooktideError('broker.timeout', `New partitions of ${topics.join(', ')} have no leader yet`, {
          remedy: 'Check that enough brokers are up, then run the command again.',
        })
      }
      await sleep(clock, 50)
    }
  }

  /** The controller has it; the brokers answer with the old value for a moment. What they print otherwise is not waited for. */
  async #untilSet(topic: string, configs: Readonly<Record<string, string>>): Promise<void> {
    const { clock } = this.#client.deps
    const untilMs = clock.mono() + 3_000
    for (;;) {
      const known = (await this.#configs([topic])).get(topic)
      const set = Object.entries(configs).every(([name, value]) => known?.get(name)?.value === value)
      if (set || clock.mono() > untilMs) return
      await sleep(clock, 20)
    }
  }

  /** Repeats through what passes by itself; `moved` says that the answer came from a former controller. */
  async #ask<T>(asked: Asked, ask: () => Promise<T>, moved: (answer: T) => boolean = () => false): Promise<T> {
    const { clock } = this.#client.deps
    try {
      const deadlineMs = clock.mono() + this.#client.deadlineMs
      return await insist(clock, deadlineMs, asked.operation, async () => {
        const answer = await ask()
        if (moved(answer)) throw library.createErrorFromCode(requestTimedOut)
        return answer
      })
    } catch (error) {
      throw adminFailure(error, asked)
    }
  }
}

function describing(topic: string): Asked {
  return { operation: 'describe topic', topic, acl: `DESCRIBE on topic ${topic}` }
}
