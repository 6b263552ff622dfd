import { HooktideError } from '../core/error.ts'
import type { Clock } from '../ports.ts'
import { missingTopic, troubleOf } from './errors.ts'
import type { Broker, ConnectionPoolBuilder, Protocol } from './internals.ts'
import { library } from './load.ts'
import type { Reach } from './reach.ts'

interface TopicInfo {
  /** Leader's node id per partition; −1 while there is none. */
  readonly leaders: readonly number[]
}

interface MetadataResponse {
  readonly brokers: readonly { nodeId: number; host: string; port: number }[]
  readonly topicMetadata: readonly {
    topicErrorCode: number
    topic: string
    partitionMetadata: readonly { partitionId: number; leader: number }[]
  }[]
}

interface LinkParts {
  readonly seeds: readonly string[]
  readonly pools: ConnectionPoolBuilder
  readonly logger: unknown
  readonly clock: Clock
  readonly reach: Reach
}

export type CoordinatorKind = 'group' | 'transaction'

const unknownTopicCode = 3

/** Our own cut, which is no news for the log. */
export const givenUp = 'connection given up'

/**
 * Connections to the brokers of one cluster, with who leads what. Takes only the wire from kafkajs (sockets, TLS, SASL,
 * framing): its Cluster retries on its own, reports the wrong topic, swallows authorisation errors of coordinators and
 * reconnects after it was closed, which would let a send that we gave up come through later.
 * Nothing here repeats anything: callers do (`insist`), and call `forget` before.
 * kafkajs keeps two sockets per broker, one for fetches only, so a long poll never stands before other requests.
 */
export class Link {
  readonly #seeds: readonly string[]
  readonly #pools: ConnectionPoolBuilder
  readonly #logger: unknown
  readonly #clock: Clock
  readonly #reach: Reach
  readonly #nodes = new Map<number, { host: string; port: number }>()
  readonly #brokers = new Map<number, Broker>()
  readonly #topics = new Map<string, TopicInfo>()
  readonly #coordinators = new Map<string, number>()
  #seed: Broker | null = null
  #nextSeed = 0
  readonly #connecting = new Map<string, Promise<Broker>>()
  /** kafkajs calls a broker connected as soon as the socket is open; before its versions are known every request throws. */
  readonly #ready = new WeakSet<Broker>()
  readonly #refreshing = new Map<string, Promise<void>>()
  #closed = false

  constructor(parts: LinkParts) {
    this.#reach = parts.reach
    this.#seeds = parts.seeds
    this.#pools = parts.pools
    this.#logger = parts.logger
    this.#clock = parts.clock
    // Several processes must not all begin with the first broker of the list.
    this.#nextSeed = Math.floor(this.#clock.random() * Math.max(1, parts.seeds.length))
  }

  /** Partition → leader of a topic, from the cache when it is there. */
  async leaders(topic: string): Promise<readonly number[]> {
    if (!this.#topics.has(topic)) await this.refresh([topic])
    const info = this.#topics.get(topic)
    if (info === undefined) throw missingTopic(topic)
    return info.leaders
  }

  /** Connected leader of a partition. */
  async leader(topic: string, partition: number): Promise<Broker> {
    const leaders = await this.leaders(topic)
    const nodeId = leaders[partition]
    if (nodeId === undefined) throw missingTopic(`${topic} partition ${partition}`)
    if (nodeId < 0) throw library.createErrorFromCode(5)
    return this.node(nodeId)
  }

  async coordinator(kind: CoordinatorKind, key: string): Promise<Broker> {
    const id = `${kind}:${key}`
    const known = this.#coordinators.get(id)
    if (known !== undefined) return this.node(known)
    const broker = await this.any()
    const found = await this.ask<{ coordinator: { nodeId: number; host: string; port: number } }>(
      broker,
      'GroupCoordinator',
      {
        groupId: key,
        coordinatorType: kind === 'group' ? 0 : 1,
      },
    )
    const { nodeId, host, port } = found.coordinator
    this.#place(nodeId, host, port)
    this.#coordinators.set(id, nodeId)
    return this.node(nodeId)
  }

  async node(nodeId: number): Promise<Broker> {
    this.#check()
    const address = this.#nodes.get(nodeId)
    if (address === undefined) throw library.createErrorFromCode(5)
    const broker = this.#brokers.get(nodeId)
    if (broker !== undefined && this.#usable(broker)) return broker
    return this.#once(`node ${nodeId}`, async () => {
      const built = this.#brokers.get(nodeId) ?? (await this.#build(address, nodeId))
      this.#brokers.set(nodeId, built)
      await this.#connect(built)
      return built
    })
  }

  /** Some connected broker. */
  async any(): Promise<Broker> {
    this.#check()
    for (const broker of this.#brokers.values()) if (this.#usable(broker)) return broker
    if (this.#seed !== null && this.#usable(this.#seed)) return this.#seed
    for (const nodeId of this.#nodes.keys()) {
      try {
        return await this.node(nodeId)
      } catch (error) {
        if (troubleOf(error) === 'fatal') throw error
      }
    }
    return this.#once('seed', async () => {
      const [host, port] = splitAddress(this.#seeds[this.#nextSeed++ % this.#seeds.length] ?? '')
      const seed = await this.#build({ host, port: Number(port) }, null)
      this.#seed = seed
      await this.#connect(seed)
      return seed
    })
  }

  /** Callers at the same time share one connection attempt; each their own would leak sockets. */
  #once(what: string, connect: () => Promise<Broker>): Promise<Broker> {
    const running = this.#connecting.get(what)
    if (running !== undefined) return running
    const connecting = connect().finally(() => this.#connecting.delete(what))
    this.#connecting.set(what, connecting)
    return connecting
  }

  /** Partition counts; an unknown topic is absent. Throws for every other trouble of a topic, naming it in `topic`. */
  async partitions(topics: readonly string[]): Promise<Map<string, number>> {
    const counts = new Map<string, number>()
    if (topics.length === 0) return counts
    await this.refresh(topics, { missing: 'ignore' })
    for (const topic of topics) {
      const info = this.#topics.get(topic)
      if (info !== undefined) counts.set(topic, info.leaders.length)
    }
    return counts
  }

  async refresh(
    topics: readonly string[],
    { missing = 'throw' }: { missing?: 'throw' | 'ignore' } = {},
  ): Promise<void> {
    const key = `${missing}:${topics.join()}`
    const running = this.#refreshing.get(key)
    if (running !== undefined) return running
    const refreshing = this.#refresh(topics, missing).finally(() => this.#refreshing.delete(key))
    this.#refreshing.set(key, refreshing)
    return refreshing
  }

  async #refresh(topics: readonly string[], missing: 'throw' | 'ignore'): Promise<void> {
    const broker = await this.any()
    const data = await this.request<MetadataResponse>(broker, 'Metadata', { topics, allowAutoTopicCreation: false })
    for (const { nodeId, host, port } of data.brokers) this.#place(nodeId, host, port)
    for (const info of data.topicMetadata) {
      if (info.topicErrorCode !== 0) {
        this.#topics.delete(info.topic)
        if (info.topicErrorCode === unknownTopicCode) {
          if (missing === 'throw') throw missingTopic(info.topic)
          continue
        }
        throw Object.assign(library.createErrorFromCode(info.topicErrorCode), { topic: info.topic })
      }
      const leaders: number[] = new Array(info.partitionMetadata.length).fill(-1)
      for (const { partitionId, leader } of info.partitionMetadata) leaders[partitionId] = leader
      this.#topics.set(info.topic, { leaders })
    }
  }

  /** Drops what an error may have made untrue; the next look-up asks again. */
  forget(error: unknown, about: { topics?: Iterable<string>; coordinators?: readonly string[] }): void {
    if (troubleOf(error) === 'concurrent' || troubleOf(error) === 'later') return
    for (const topic of about.topics ?? []) this.#topics.delete(topic)
    for (const id of about.coordinators ?? []) this.#coordinators.delete(id)
  }

  /** One request of kafkajs's repertoire, its response as decoded, error codes left in place. */
  request<T>(broker: Broker, api: string, args: unknown): Promise<T> {
    const protocol = this.#protocol<T>(broker, api, args)
    return this.send(broker, {
      ...protocol,
      response: { decode: protocol.response.decode, parse: async (data) => data },
    })
  }

  /** The same, but rejects with the first error code found in the response. */
  ask<T>(broker: Broker, api: string, args: unknown): Promise<T> {
    return this.send(broker, this.#protocol<T>(broker, api, args))
  }

  send<T>(broker: Broker, protocol: Protocol<T>): Promise<T> {
    return this.#guard(broker, () => broker.connectionPool.send({ ...protocol, logResponseError: false }))
  }

  #protocol<T>(broker: Broker, api: string, args: unknown): Protocol<T> {
    const definition = library.requests[api]
    return broker.lookupRequest(library.apiKeys[api] as number, definition)(args) as unknown as Protocol<T>
  }

  /** Cuts every connection; what still waits for an answer is rejected at once. */
  close(): void {
    this.#closed = true
    for (const broker of [...this.#brokers.values(), ...(this.#seed === null ? [] : [this.#seed])]) this.#drop(broker)
  }

  async #connect(broker: Broker): Promise<void> {
    if (!broker.isConnected()) await this.#guard(broker, () => broker.connect())
    this.#ready.add(broker)
    const { host, port } = broker.connectionPool
    this.#reach.connected(`${host}:${port}`)
    if (!this.#closed) return
    this.#drop(broker)
    this.#check()
  }

  #usable(broker: Broker): boolean {
    return this.#ready.has(broker) && broker.isConnected()
  }

  async #guard<T>(broker: Broker, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      if (troubleOf(error) === 'connection') this.#drop(broker)
      throw error
    }
  }

  /**
   * Cuts the sockets and forgets the object. kafkajs's own `disconnect` waits for outstanding answers (for ever on a
   * half-open socket) and lets a reconnect happen meanwhile; a cut also makes sure that what was not sent never is.
   */
  #drop(broker: Broker): void {
    if (broker === this.#seed) this.#seed = null
    for (const [nodeId, known] of this.#brokers) if (known === broker) this.#brokers.delete(nodeId)
    const cut = Object.assign(new Error(givenUp), { code: 'ECONNABORTED' })
    for (const { socket } of broker.connectionPool.pool) socket?.destroy(cut)
  }

  #place(nodeId: number, host: string, port: number): void {
    const known = this.#nodes.get(nodeId)
    if (known !== undefined && known.host === host && known.port === port) return
    this.#nodes.set(nodeId, { host, port })
    const moved = this.#brokers.get(nodeId)
    if (moved !== undefined) this.#drop(moved)
  }

  async #build(address: { host: string; port: number }, nodeId: number | null): Promise<Broker> {
    return new library.Broker({
      connectionPool: await this.#pools.build(address),
      logger: this.#logger,
      nodeId,
      authenticationTimeout: 10_000,
      allowAutoTopicCreation: false,
    })
  }

  #check(): void {
    if (this.#closed) throw new HooktideError('producer.closed', 'The connection to Kafka is closed')
  }
}

function splitAddress(address: string): [string, string] {
  const colon = address.lastIndexOf(':')
  return [address.slice(0, colon).replace(/^\[|\]$/g, ''), address.slice(colon + 1)]
}
