import type { LegacySignature } from './core/endpoint-settings.ts'
import type { Reply } from './core/outcome.ts'
import type { FetchedBatch, GroupOffset, OutRecord, TopicPartition } from './core/record.ts'
import type { Secret } from './core/secret.ts'
import type {
  DeliveryDetail,
  DeliveryQuery,
  DeliveryView,
  OrderView,
  Paged,
  StatePage,
  StatePosition,
  StatusCounts,
  SubscriptionHealth,
} from './core/state-view.ts'
import type { Subscription } from './core/subscription.ts'
import type { TopicState } from './core/topic-spec.ts'

/** Time and chance. The only real ones are made in `app.ts`; tests bring their own. */
export interface Clock {
  /** Epoch ms. */
  now(): number
  /** Monotonic ms with a fraction; only differences mean anything. */
  mono(): number
  /** Calls `fn` once after `ms`; the returned function cancels. Never keeps the process alive by itself. */
  after(ms: number, fn: () => void): () => void
  /** Uniform in [0, 1). */
  random(): number
}

/** Groupless, positioned reading of single partitions, always read committed. Position moves by `nextOffset`. */
export interface LogReader {
  /** Last stable offset (what read committed can reach) per partition; all partitions when none are named. */
  ends(topic: string, partitions?: readonly number[]): Promise<ReadonlyMap<number, number>>
  /** First offset still in the log, per partition. */
  starts(topic: string, partitions?: readonly number[]): Promise<ReadonlyMap<number, number>>
  /**
   * One fetch at `from`: what is there, at most about `maxBytes`, waiting up to `maxWaitMs` for something.
   * `from` below the log start continues at the log start (the batch's records tell); beyond the end rejects `internal`.
   */
  fetch(at: TopicPartition & { from: number; maxBytes?: number; maxWaitMs?: number }): Promise<FetchedBatch>
  close(): Promise<void>
}

/**
 * A consumer group member. Handlers are synchronous but for `onRevoking`, must not throw, and must be quick: polling
 * waits for nothing else.
 */
export interface GroupConsumer {
  /** Resolves when the first join is done (or rejects with a HooktideError when it can't ever be). Later trouble: `onFatal`. */
  start(handlers: GroupHandlers): Promise<void>
  /** Effective at once for the handler (no batch of a paused partition arrives after it), idempotent. */
  pause(partitions: readonly TopicPartition[]): void
  resume(partitions: readonly TopicPartition[]): void
  /** Next batch of the partition starts at `offset`; fetched batches from elsewhere are thrown away. */
  seek(partition: TopicPartition, offset: number): void
  /** Plain commit, for routers only (a router's offset is always safe to commit); lanes commit in their transactions. */
  commit(offsets: readonly GroupOffset[]): Promise<void>
  /** Milliseconds (mono) since the coordinator last confirmed our membership: the lease. */
  leaseAgeMs(): number
  /** Leaves the group. Call after draining and committing: it does neither. Idempotent. */
  stop(): Promise<void>
}

export interface GroupHandlers {
  /**
   * Before each rejoin, while commits are still accepted: drain, commit, give up. Awaited until `deadlineMs` (mono) at
   * the longest. `lost`: membership is gone already, committing is pointless.
   */
  onRevoking(info: { readonly deadlineMs: number; readonly lost: boolean }): Promise<void>
  /**
   * After each join, before the first fetch. Every assigned partition is PAUSED until `resume`, whatever its state was.
   * `kept` only when no other member can have owned the partition in between.
   */
  onAssigned(info: {
    readonly gained: readonly TopicPartition[]
    readonly kept: readonly TopicPartition[]
    readonly lost: readonly TopicPartition[]
    readonly generation: number
  }): void
  onBatch(batch: FetchedBatch): void
  /** A batch could not be decoded (foreign codec, damage, bomb) and was skipped: alarm, and a `rejected` record is due. */
  onUndecodable(
    info: TopicPartition & { readonly offset: number; readonly nextOffset: number; readonly reason: string },
  ): void
  /** The consumer can't go on even after recreating itself; the process should end with this. */
  onFatal(error: Error): void
}

export interface GroupConsumerOptions {
  readonly group: string
  readonly topics: readonly string[]
  /** `lanes`: partition p of all topics goes to one member, sticky; `partitions`: single topic-partitions, sticky. */
  readonly assign: 'lanes' | 'partitions'
  /** Longest drain before a rejoin, ms; must be below session time-out − 2 s. */
  readonly drainMs: number
}

/** Plain producer: acks all, one request in flight, byte-chunked, recreated by itself after any error. */
export interface Producer {
  /** Resolves when every record is acknowledged, with the partitions' first offsets and append times; rejects when any is not. */
  send(records: readonly OutRecord[]): Promise<readonly Appended[]>
  close(): Promise<void>
}

export interface Appended extends TopicPartition {
  readonly firstOffset: number
  readonly count: number
  /** Broker's append time (epoch ms) on LogAppendTime topics, else null. */
  readonly appendTimeMs: number | null
}

export interface Transaction {
  readonly records: readonly OutRecord[]
  readonly group: string
  readonly offsets: readonly GroupOffset[]
}

/** One transactional id; at most one transaction at a time. After any rejection it is dead: close it and open another. */
export interface TransactionalProducer {
  /** InitProducerId: afterwards nobody who held the id before can commit, and what was pending is decided. */
  fence(): Promise<void>
  /** All or nothing. Rejects `producer.fenced` (another owner lives), `record.too-large` (nothing written) or `producer.failed` (outcome unknown). */
  transact(transaction: Transaction): Promise<readonly Appended[]>
  close(): Promise<void>
}

/** Group offsets and log bounds; no consumer needed. */
export interface Offsets {
  committed(group: string, partitions: readonly TopicPartition[]): Promise<readonly GroupOffset[]>
}

/** What the pipeline needs of Kafka: everything above, made by one factory so that a test can bring another world. */
export interface Kafka {
  consumer(options: GroupConsumerOptions): GroupConsumer
  producer(): Producer
  transactional(transactionalId: string): TransactionalProducer
  reader(): LogReader
  readonly offsets: Offsets
  /** Partition counts of existing topics; a missing topic is absent from the map. */
  partitions(topics: readonly string[]): Promise<ReadonlyMap<string, number>>
  close(): Promise<void>
}

export interface GroupState {
  readonly group: string
  /** `Stable`, `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Dead`. */
  readonly state: string
  readonly members: readonly {
    readonly id: string
    readonly clientId: string
    readonly host: string
    readonly partitions: readonly TopicPartition[]
  }[]
}

/** What an operator's commands need of the cluster. Rejects `broker.unauthorized` naming resource and operation. Never deletes. */
export interface TopicAdmin {
  /** Live brokers and the time one question took. */
  cluster(): Promise<{ readonly id: string; readonly brokers: readonly string[]; readonly roundTripMs: number }>
  /** Missing topics are absent from the map. */
  describe(topics: readonly string[]): Promise<ReadonlyMap<string, TopicState>>
  /** Resolves when every partition has a leader. A topic that exists already is left as it is. */
  create(topics: readonly NewTopic[]): Promise<void>
  /** Sets these settings; every other override of the topic stays. */
  alterConfigs(topic: string, configs: Readonly<Record<string, string>>): Promise<void>
  /** Raises the partition count. */
  grow(topic: string, partitions: number): Promise<void>
  /** Consumer groups whose name begins with `prefix`. */
  groups(prefix: string): Promise<readonly GroupState[]>
  close(): Promise<void>
}

export interface NewTopic {
  readonly topic: string
  readonly partitions: number
  readonly replication: number
  readonly configs: Readonly<Record<string, string>>
}

/** One POST, ready to go but for the signature's time. */
export interface Post {
  readonly url: string
  readonly deliveryId: string
  readonly attempt: number
  readonly eventType: string
  readonly contentType: string
  readonly traceparent: string | null
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Signing keys in the order of the signature header: newest first. */
  readonly keys: readonly SigningKey[]
  /** Also sign the body alone, for receivers that come from elsewhere; with `legacyKey`, else with the newest HMAC key. */
  readonly legacySignature?: LegacySignature | undefined
  /** What lets it in, beside the signature. */
  readonly access?: Access | undefined
  /** Total deadline of the attempt, ms, within the sender's bound; undefined: the sender's default. */
  readonly timeoutMs: number | undefined
}

/** A client certificate; opaque. Connections are shared only by POSTs with the same one. */
export interface ClientIdentity {
  readonly id: string
}

/** What an attempt brings to be let in. Made of secrets: never logged, never stored. */
export interface Access {
  /** Value of `authorization`. */
  readonly authorization: string | null
  readonly client: ClientIdentity | null
  readonly legacyKey: SigningKey | null
  /** Tells one access token from the next; null: none is involved. */
  readonly token: object | null
  /** Texts that must not come back in an excerpt. */
  readonly confidential: readonly string[]
}

/** `pending`: a token is being fetched, `onChange` tells when that is over; `missing`: it can't be had now. */
export type AccessState =
  | { readonly t: 'ready'; readonly access: Access | null }
  | { readonly t: 'pending' }
  | { readonly t: 'missing'; readonly class: 'secret' | 'auth'; readonly detail: string }

/** Credentials behind the references of subscriptions. Nothing here waits, throws or rejects. */
export interface Accesses {
  /** As things stand now; cheap. Starts the fetch of a token that is missing or will expire. */
  of(subscription: Subscription): AccessState
  /** The endpoint answered 401 to it: its token is dropped, once. True: another attempt has a different one. */
  refused(subscription: Subscription, access: Access): boolean
  accepted(subscription: Subscription, access: Access): void
  /** Called with a subscription's id when it is `pending` no more. */
  onChange(listener: (subscriptionId: string) => void): void
}

/** Opaque to the pipeline: `http/sign.ts` knows what is inside. Prints as `***`. */
export interface SigningKey {
  readonly kind: 'v1' | 'v1a'
  sign(content: readonly (Buffer | string)[]): string
}

export interface Sender {
  /** Never rejects: every failure is a `Reply`. The request is handed to the socket layer before this returns. */
  post(post: Post): Promise<Reply>
  /** Ends open POSTs as `interrupted`. */
  abortAll(reason: string): void
  close(): Promise<void>
}

export interface Secrets {
  /** Current signing keys behind a reference; null when it can't be resolved now (the reason goes to the observer). Cheap. */
  keys(ref: string): readonly SigningKey[] | null
  /** The text behind a reference, as `keys`: the same object until the text changes. */
  text(ref: string): Secret | null
}

/**
 * Questions to the delivery state (docs/state.md): a fold of the log that a projector keeps, so it trails the log by
 * what `positions` says. Rejects `state.unavailable` where there is none yet or its store can't be reached.
 */
export interface StateStore {
  /** Newest first by `createdMs`. */
  deliveries(query: DeliveryQuery, page: StatePage): Promise<Paged<DeliveryView>>
  /** Null: not there, or another tenant's. */
  delivery(id: string, tenant?: string): Promise<DeliveryDetail | null>
  /** Null: no delivery of it is in the log, or it is another tenant's. */
  subscriptionHealth(id: string, tenant?: string): Promise<SubscriptionHealth | null>
  /** By subscription id. `failing`: only those whose last attempt failed. */
  subscriptionsHealth(
    query: { readonly tenant?: string; readonly failing?: boolean },
    page: StatePage,
  ): Promise<Paged<SubscriptionHealth>>
  counts(query: { readonly tenant?: string; readonly subscriptionId?: string }): Promise<StatusCounts>
  /** Orders and jobs of `control`, by key. Not per tenant: show them to operators only. */
  orders(query: { readonly kind?: string }, page: StatePage): Promise<Paged<OrderView>>
  positions(): Promise<readonly StatePosition[]>
  /**
   * Read your writes: resolves to true when everything of the partition below `offset` is in the state, to false when
   * that has not come within the time.
   */
  waitFor(at: TopicPartition & { readonly offset: number }, timeoutMs: number): Promise<boolean>
  close(): Promise<void>
}

export type Level = 'debug' | 'info' | 'warn' | 'error'
export type Fields = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Logs and metrics. Never throws, never waits. Names are stable: `delivery.attempted`, `lane.gained`, … */
export interface Observer {
  log(level: Level, name: string, fields?: Fields): void
  count(name: string, n?: number, labels?: Readonly<Record<string, string>>): void
  time(name: string, ms: number, labels?: Readonly<Record<string, string>>): void
}
