import type { CircuitPolicy } from '../core/circuit.ts'
import type { FailingPolicy } from '../core/failing.ts'
import type { Tier } from '../core/ladder.ts'
import type { SpanLimits } from '../core/offset-tracker.ts'
import type { RetryPolicy } from '../core/retry-policy.ts'
import type { CrowdLimits } from './crowd.ts'
import type { ExecutorLimits } from './executor-limits.ts'
import type { CommitLimits } from './lane-committer.ts'
import type { FlowLimits } from './lane-flow.ts'
import type { LaneTopics } from './lane-topics.ts'
import type { LinesOptions } from './lines.ts'
import type { RouterLimits } from './router-deps.ts'

/** What is configured of a pipeline. */
export interface PipelineSettings {
  readonly roles: { readonly router: boolean; readonly deliverer: boolean }
  readonly topics: LaneTopics & {
    readonly events: readonly string[]
    readonly subscriptions: string
    readonly control: string
  }
  readonly lanes: number
  readonly rejectedPartitions: number
  readonly tiers: readonly Tier[]
  readonly policy: RetryPolicy
  /** Older events are not POSTed; 0: none is too old. */
  readonly maxEventAgeMs: number
  readonly groups: { readonly router: string; readonly deliverer: string }
  readonly transactionalIdPrefix: string
  readonly router: RouterLimits
  readonly executor: Omit<ExecutorLimits, 'leased'>
  readonly flow: FlowLimits
  readonly maxBytes: number
  readonly commit: CommitLimits
  readonly lines: LinesOptions
  readonly crowd: CrowdLimits
  readonly circuit: CircuitPolicy
  readonly failing: FailingPolicy
  /** Deadline of a POST in all, ms. */
  readonly totalTimeoutMs: number
  readonly claims: { readonly maxOpenBytes: number; readonly fetchMs: number }
  /** What the types of operational events begin with; null: there are none. */
  readonly reservedTypes: string | null
  /** Exhausted deliveries per subscription that may die without a success in between. */
  readonly deadCredit: number
  /** Log lines a second, at most, about deliveries that succeeded. */
  readonly successLines: number
  readonly span: SpanLimits
  /** Longest drain before a rejoin, and at the end of the process, ms. */
  readonly drainMs: number
  readonly stopDrainMs: number
  /** Nothing starts when the coordinator has not confirmed our membership for so long, ms. */
  readonly leaseMs: number
}
