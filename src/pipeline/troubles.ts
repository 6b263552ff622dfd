import type { Delivery } from '../core/delivery.ts'
import type { Subscription } from '../core/subscription.ts'

/** A subscription that fails: since when, how often, and how last. */
export interface Failing {
  readonly sinceMs: number
  readonly failures: number
  readonly error: string
}

/** A delivery that was given up, as of its commit. */
export interface Death {
  readonly delivery: Delivery
  readonly attempts: number
  readonly reason: string
  readonly error: string
  readonly atMs: number
}

/** What becomes of what lanes find out about subscriptions. Never throws, never waits. */
export interface Troubles {
  /** It is disabled; this process treats it so already. `since`: it failed for too long; null: its endpoint answered 410. */
  disabled(subscription: Subscription, reason: string, since: Failing | null): void
  failing(subscription: Subscription, failing: Failing): void
  dead(death: Death): void
}
