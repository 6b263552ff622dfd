import type { Attempt } from '../core/attempt.ts'
import type { TopicPartition } from '../core/record.ts'
import type { HealthRow } from '../core/state-health.ts'
import type { DeliveryRow } from '../core/state-row.ts'
import type { DeliveryStatus, StatePosition } from '../core/state-view.ts'

/** A delivery's row as the store has it. */
export interface StoredRow {
  readonly no: number
  readonly row: DeliveryRow
}

export interface RowChange {
  readonly no: number
  readonly row: DeliveryRow
  /** As the store has it; null: it is new. */
  readonly before: DeliveryRow | null
}

export interface AttemptChange {
  readonly lane: number
  readonly offset: number
  readonly loggedMs: number
  /** `no` of its delivery. */
  readonly delivery: number
  readonly attempt: Attempt
}

export interface CountChange {
  readonly tenant: string
  readonly subscriptionId: string
  readonly status: DeliveryStatus
  readonly by: number
}

export interface OrderChange extends TopicPartition {
  readonly key: string
  readonly offset: number
  readonly kind: string
  /** JSON of the order; null: taken back by a tombstone. */
  readonly value: string | null
}

/** `from`: what the store must have had as `folded`. */
export interface PositionChange extends StatePosition {
  readonly from: number
}

/** What one batch of the log changes; written in one transaction with the positions that it brings the state to. */
export interface StateChange {
  readonly rows: readonly RowChange[]
  readonly attempts: readonly AttemptChange[]
  readonly health: readonly HealthRow[]
  readonly counts: readonly CountChange[]
  readonly orders: readonly OrderChange[]
  readonly positions: readonly PositionChange[]
}

/** The writing side of a store. One fold at a time uses it; what others write meanwhile makes `commit` say `stale`. */
export interface StateWriter {
  positions(): Promise<readonly StatePosition[]>
  /** The next free `no`. */
  nextNo(): Promise<number>
  rows(ids: readonly string[]): Promise<ReadonlyMap<string, StoredRow>>
  health(keys: readonly { readonly subscriptionId: string; readonly lane: number }[]): Promise<readonly HealthRow[]>
  /**
   * All or nothing. `stale`: another fold has moved a position since; nothing was written, and what the caller remembers of
   * rows is worthless.
   */
  commit(change: StateChange): Promise<'done' | 'stale'>
  /**
   * Forgets what the log has forgotten, as `starts` says, as if it had never been folded. At most `limit` rows of each kind
   * in one transaction; returns how many there were, fewer than `limit`: that was all.
   */
  forget(starts: LogStarts, limit: number): Promise<number>
  /** Rows of one subscription, tenant or event, whole; returns how many deliveries. For `hooktide erase`. */
  erase(what: Erased): Promise<number>
  close(): Promise<void>
}

export interface LogStarts {
  readonly attemptsTopic: string
  of(topic: string, partition: number): number
  readonly all: readonly (TopicPartition & { readonly start: number })[]
}

export type Erased = { readonly by: 'subscription' | 'tenant' | 'event'; readonly id: string }
