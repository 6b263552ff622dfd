import type { ClockOffset } from '../core/clock-offset.ts'
import type { DeadCredit } from '../core/dead-credit.ts'
import type { FailingPolicy } from '../core/failing.ts'
import type { Ladder } from '../core/ladder.ts'
import type { CircuitMark, FailingMark, LineState, OffsetsState } from '../core/lane-state.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { Orders } from '../core/orders.ts'
import type { OriginFilter } from '../core/origin-filter.ts'
import type { RetryPolicy } from '../core/retry-policy.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Clock, Observer } from '../ports.ts'
import type { Circuits } from './circuits.ts'
import type { CrowdLimits } from './crowd.ts'
import type { Executor } from './executor.ts'
import type { LaneTopics } from './lane-topics.ts'
import type { LinesOptions } from './lines.ts'
import type { LogQuota } from './log-quota.ts'
import type { Death, Failing } from './troubles.ts'

/** What every lane of a process shares. */
export interface LaneWorld {
  readonly clock: Clock
  readonly observer: Observer
  readonly successes: LogQuota
  readonly executor: Executor
  readonly topics: LaneTopics
  readonly rejectedPartitions: number
  readonly ladder: Ladder
  readonly policy: RetryPolicy
  readonly clockOffset: ClockOffset
  readonly lines: LinesOptions
  readonly crowd: CrowdLimits
  readonly circuits: Circuits
  readonly deadCredit: DeadCredit
  readonly orders: Orders
  /** Lanes in all: a tier's rate is divided among them. */
  readonly lanes: number
  /** The origin of a URL, for caps and circuits. */
  originOf(url: string): string
  subscription(id: string): Subscription | undefined
  /** Resolves when the table is as new as its topic was at the call. */
  freshen(): Promise<void>
  /** The endpoint answered 410: what is asked of the subscription from now on finds it disabled. */
  gone(subscription: Subscription): void
  readonly failing: {
    readonly policy: FailingPolicy
    /** For so long that it is to be told, or disabled: then as with `gone`. */
    told(subscription: Subscription, failing: Failing & { readonly disable: boolean }): void
  }
  dead(death: Death): void
}

/** What a lane starts from: what Kafka holds of it. */
export interface LaneStart {
  readonly partition: number
  readonly epoch: number
  /** `deliveries` first, then the tiers, as in `sourceTopics`. */
  readonly trackers: readonly OffsetTracker[]
  readonly lines: readonly LineState[]
  readonly circuits: readonly CircuitMark[]
  readonly failing: readonly FailingMark[]
  readonly filter: OriginFilter
  /** By topic; see `LaneContents`. */
  readonly beside: ReadonlyMap<string, OffsetsState>
  readonly parkedEnd: number
  /** Where each source ended then. */
  readonly ends: readonly number[]
}
