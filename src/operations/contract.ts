import type { Control } from '../core/control.ts'
import type { EventLimits } from '../core/event.ts'
import type { OutRecord } from '../core/record.ts'
import type {
  DeliveryDetail,
  DeliveryQuery,
  DeliveryView,
  Paged,
  StatePage,
  SubscriptionHealth,
} from '../core/state-view.ts'
import type { Subscription, SubscriptionStatus } from '../core/subscription.ts'
import type { TopicPlan } from '../core/topology.ts'
import type { Appended } from '../ports.ts'
import type { DeadJson, DeadShown } from './dead-json.ts'
import type { JobOperations } from './job-contract.ts'
import type { LineDetailsJson, LineJson } from './line-json.ts'
import type { OrderInput } from './order-input.ts'
import type { StateStatus } from './state-status.ts'
import type { Status } from './status-read.ts'
import type { StoryJson } from './story-json.ts'
import type { FieldChange, PlannedAction } from './subscription-plan.ts'
import type { TierFound } from './tier-read.ts'

/** For whom something is done. Tenant null: an operator, who sees all of them; else everything of others is as if it were not there. */
export interface Caller {
  readonly tenant: string | null
  /** Who, for the audit. */
  readonly by: string
  /** `by` is known for certain (a token's name): what the caller says of itself stands beside it, not in its place. */
  readonly named?: boolean
  /**
   * Secrets of the service that subscriptions may be made to use: all; `signing`: to sign with only; `own`: none but what is
   * made for them. All by default.
   */
  readonly references?: 'all' | 'signing' | 'own'
}

/**
 * Everything an operator can do, with results that JSON can carry: there is one implementation over Kafka and one over
 * the HTTP API of a service, and whoever calls can't tell them apart. Rejects with HooktideErrors.
 */
export interface Operations {
  readonly subscriptions: SubscriptionOperations
  readonly deliveries: DeliveryOperations
  readonly dead: DeadOperations
  readonly lines: LineOperations
  readonly tiers: TierOperations
  readonly orders: OrderOperations
  readonly events: EventOperations
  readonly jobs: JobOperations
  /** `metricsUrls`: instances to ask for what is in flight. */
  status(metricsUrls: readonly string[]): Promise<Status>
  /** What the topics are against what they should be. */
  topics(): Promise<{ readonly topics: readonly TopicPlan[] }>
  /** Rejects `state.unavailable` where there is none. */
  state(): Promise<StateStatus>
}

export interface SubscriptionOperations {
  /** `reveal`: URL queries and header values too; over Kafka only. */
  list(filter: {
    readonly tenant?: string | undefined
    readonly status?: string | undefined
    readonly reveal?: boolean
  }): Promise<SubscriptionList>
  show(
    id: string,
    options?: { readonly reveal?: boolean },
  ): Promise<{ readonly subscription: Subscription; readonly version: string }>
  /** Rejects `conflict` when the id is taken. `verify`: paused until its endpoint has answered a signed challenge. */
  add(input: Record<string, unknown>, options?: { readonly verify?: boolean }): Promise<WrittenSubscription>
  /** Fields given replace, null takes away, `retry` is merged field by field; what is not given stays. */
  change(id: string, fields: Record<string, unknown>, ifVersion?: string): Promise<WrittenSubscription>
  /** All of it, but what lives elsewhere: `status` and `secrets` stay where they are left out. */
  replace(id: string, input: Record<string, unknown>, ifVersion?: string): Promise<WrittenSubscription>
  setStatus(id: string, status: SubscriptionStatus, reason?: string): Promise<WrittenSubscription>
  rotateSecret(id: string, options: { readonly ref: string; readonly overlapMs: number }): Promise<WrittenSubscription>
  remove(ids: readonly string[], ifVersion?: string): Promise<{ readonly removed: readonly string[] }>
  apply(items: readonly unknown[], options: ApplyOptions): Promise<AppliedPlan>
  /** One delivery of type `hooktide.test`, to this subscription alone, whatever its types are. */
  test(id: string): Promise<{ readonly deliveryId: string; readonly eventId: string }>
  health(id: string): Promise<SubscriptionHealthAnswer>
  /** Sends a signed challenge to each endpoint; one that waited for it becomes active when it comes back. */
  verify(ids: readonly string[]): Promise<{ readonly verified: readonly VerifiedJson[] }>
}

export interface SubscriptionList {
  readonly subscriptions: readonly Subscription[]
  readonly unreadable: readonly { readonly id: string; readonly reason: string }[]
}

export interface WrittenSubscription {
  /** As it may be seen. */
  readonly subscription: Subscription
  readonly version: string
  /** Made by `kafka:new`; told this once. */
  readonly newSecrets: readonly { readonly ref: string; readonly secret: string }[]
  /** For whoever asked: nothing is wrong, but it may not be known. */
  readonly notes: readonly string[]
}

export interface VerifiedJson {
  readonly id: string
  readonly verified: boolean
  readonly detail: string
  readonly status: SubscriptionStatus
}

export interface ApplyOptions {
  readonly prune: { readonly tenant: string | null } | null
  readonly dryRun: boolean
  /** What the items came from, for messages. */
  readonly label: string
}

export interface AppliedPlan {
  readonly applied: boolean
  readonly plan: readonly PlannedItem[]
  readonly counts: Readonly<Record<PlannedAction, number>>
  readonly notes: readonly string[]
}

export interface PlannedItem {
  readonly id: string
  readonly action: PlannedAction
  readonly changes: readonly FieldChange[]
  /** Where it would be sent to; null for `remove`. */
  readonly url: string | null
}

export interface SubscriptionHealthAnswer {
  readonly id: string
  readonly status: SubscriptionStatus
  readonly statusReason: string | null
  /** Null: no delivery of it is in the log. */
  readonly health: SubscriptionHealth | null
}

export interface DeliveryOperations {
  /** Everything the log holds of one delivery: reads one lane, or all where the subscription is not known. */
  story(id: string, subscription: string | undefined): Promise<StoryJson>
  /** `unseen`: without looking for it first. */
  cancel(
    id: string,
    options: OrderInput & {
      readonly subscription?: string | undefined
      readonly dead?: boolean
      readonly unseen?: boolean
    },
  ): Promise<{ readonly order: Control }>
  /** From the delivery state; rejects `state.unavailable` where there is none. */
  search(query: DeliveryQuery, page: StatePage): Promise<Paged<DeliveryView>>
  show(id: string): Promise<DeliveryDetail>
  /** Sends a delivery that is final again, at once, under its id. Rejects `conflict` when it waits for an attempt. */
  retry(id: string): Promise<RedriveReport>
}

export interface DeadFilterInput {
  readonly subscription?: string | undefined
  /** Who is bound to one sees that one's anyway. */
  readonly tenant?: string | undefined
  readonly reason?: string | undefined
  /** As it stands in the dead letter: `503`, `timeout`. */
  readonly lastError?: string | undefined
  /** Died at or after it, and before it, epoch ms. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** `partition/offset`, of the call before. */
  readonly cursor?: string | undefined
}

export interface DeadOperations {
  list(filter: DeadFilterInput & { readonly limit: number }): Promise<DeadPage>
  /** By delivery id, or its place in `dead`: partition/offset. */
  show(id: string, subscription: string | undefined): Promise<DeadShown>
  redrive(options: RedriveInput): Promise<RedriveReport>
}

export interface DeadPage {
  readonly dead: readonly DeadJson[]
  /** Null: there is nothing behind these. */
  readonly cursor: string | null
}

export interface RedriveInput extends DeadFilterInput {
  /** None: all that the filters leave. */
  readonly ids: readonly string[]
  readonly perSecond?: number | undefined
  readonly dryRun: boolean
}

export interface RedriveReport {
  readonly job: string
  readonly dryRun: boolean
  readonly redriven: number
  readonly repeated: number
  readonly unreadable: number
  readonly orphaned: number
  /** Of the ids given, those that are not among the dead letters that were read. */
  readonly notFound: readonly string[]
  readonly interrupted: boolean
  /** Where to go on, when it was interrupted. */
  readonly cursor: string | null
}

export interface LineChoiceInput {
  /** The whole line: `billing k order-7`. */
  readonly line?: string | undefined
  readonly subscription?: string | undefined
  readonly key?: string | undefined
}

export interface LineOperations {
  list(filter: {
    readonly subscription?: string | undefined
    readonly state?: string | undefined
    readonly limit: number
  }): Promise<{ readonly lines: readonly LineJson[]; readonly total: number }>
  show(choice: LineChoiceInput, limit: number): Promise<{ readonly lines: readonly LineDetailsJson[] }>
  /** `order` null: it goes on already. */
  release(choice: LineChoiceInput, order: OrderInput): Promise<LineOrdered>
  skip(choice: LineChoiceInput, order: OrderInput & { readonly dead?: boolean }): Promise<LineOrdered>
  /** Without `confirmed` it rejects `usage` with what it would do. */
  cancel(
    choice: LineChoiceInput,
    order: OrderInput & { readonly dead?: boolean; readonly confirmed: boolean },
  ): Promise<LineOrdered>
}

export interface LineOrdered {
  readonly line: string
  readonly order: Control | null
  readonly head: string | null
  readonly parked: number
}

export interface TierOperations {
  list(): Promise<{ readonly tiers: readonly TierFound[] }>
  order(
    tier: string,
    what: { readonly order: 'pause' | 'resume' } | { readonly order: 'throttle'; readonly perSecond: number },
    order: OrderInput,
  ): Promise<{ readonly order: Control }>
}

export interface OrderListed {
  readonly key: string
  readonly order: Control | null
  readonly problem: string | null
  readonly inForce: boolean
}

export interface OrderOperations {
  list(filter: {
    readonly kind?: string | undefined
    readonly all?: boolean
  }): Promise<{ readonly orders: readonly OrderListed[] }>
  clear(
    targets: readonly string[],
    options: { readonly ended: boolean },
  ): Promise<{ readonly cleared: readonly string[] }>
}

export interface EventOperations {
  /** Null: the first events topic. */
  open(topic: string | null): Promise<EventTarget>
}

export interface EventTarget {
  readonly topic: string
  readonly partitions: number
  readonly limits: EventLimits
  /** Whoever takes the records stores bodies above `limits.maxBytes` apart by itself, up to so many bytes. Null: it does not. */
  readonly maxLargeBytes: number | null
  send(records: readonly OutRecord[]): Promise<readonly Appended[]>
  close(): Promise<void>
}
