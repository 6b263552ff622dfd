import { HooktideError } from '../core/error.ts'
import type { KafkaClient } from './client.ts'
import { within } from './deadline.ts'
import type { Broker } from './internals.ts'
import { givenUp, type Link } from './link.ts'
import { library } from './load.ts'

/** Connections of one group consumer, and who leads what as of the last metadata. */
export class GroupLink {
  readonly #client: KafkaClient
  readonly #link: Link
  readonly #topics: readonly string[]
  readonly #requestMs: number
  #leaders = new Map<string, readonly number[]>()
  #refreshedMono = 0

  constructor(client: KafkaClient, topics: readonly string[], requestMs: number) {
    this.#client = client
    this.#link = client.link()
    this.#topics = topics
    this.#requestMs = requestMs
  }

  /** Metadata has been read: it is connected. */
  get ready(): boolean {
    return this.#leaders.size > 0
  }

  /** Partition counts of the subscribed topics. */
  counts(): Map<string, number> {
    return new Map([...this.#leaders].map(([topic, leaders]) => [topic, leaders.length]))
  }

  /** Node id; −1 while there is none. */
  leaderOf(topic: string, partition: number): number {
    return this.#leaders.get(topic)?.[partition] ?? -1
  }

  metadataAgeMs(): number {
    return this.#client.deps.clock.mono() - this.#refreshedMono
  }

  /** Connects if need be. Rejects when it can't, or when a topic is missing. */
  async refresh(): Promise<void> {
    const run = async () => {
      await this.#link.refresh(this.#topics)
      const leaders = new Map<string, readonly number[]>()
      for (const topic of this.#topics) leaders.set(topic, await this.#link.leaders(topic))
      return leaders
    }
    this.#leaders = await this.within('metadata', run())
    this.#refreshedMono = this.#client.deps.clock.mono()
  }

  /** Topics that have more partitions than when last looked. */
  async grown(): Promise<string[]> {
    const before = this.counts()
    await this.refresh()
    return [...this.counts()].filter(([topic, now]) => now > (before.get(topic) ?? now)).map(([topic]) => topic)
  }

  async node(nodeId: number): Promise<Broker> {
    return this.within('connect', this.#link.node(nodeId))
  }

  async coordinator(group: string): Promise<Broker> {
    return this.within('find coordinator', this.#link.coordinator('group', group))
  }

  forgetCoordinator(group: string, error: unknown): void {
    this.#link.forget(error, { coordinators: [`group:${group}`] })
  }

  /** One request, sent once. Rejects for the response's own error code; codes of parts of it are left to the caller. */
  async call<T extends object>(broker: Broker, api: string, args: object, extraMs = 0): Promise<T> {
    let data: T
    try {
      data = await this.within(api, this.#link.request<T>(broker, api, args), extraMs)
    } catch (error) {
      // Half-open, or a frozen broker: whatever else waits on these sockets waits in vain, and kafkajs would reuse them.
      if (error instanceof HooktideError && error.code === 'broker.timeout') cut(broker)
      throw error
    }
    const code = (data as { errorCode?: number }).errorCode ?? 0
    if (code !== 0) throw Object.assign(library.createErrorFromCode(code), { response: data })
    return data
  }

  within<T>(what: string, promise: Promise<T>, extraMs = 0): Promise<T> {
    const { clock } = this.#client.deps
    return within(clock, clock.mono() + this.#requestMs + extraMs, what, promise)
  }

  /** Cuts every connection; what is in flight rejects. */
  close(): void {
    this.#link.close()
  }
}

function cut(broker: Broker): void {
  const reason = Object.assign(new Error(givenUp), { code: 'ECONNABORTED' })
  for (const { socket } of broker.connectionPool.pool) socket?.destroy(reason)
}
