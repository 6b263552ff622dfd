import type { EndpointSettings } from './endpoint-settings.ts'
import type { Transformation } from './transform.ts'

/** `key`: ordered per subscription and ordering key; `subscription`: one line; `none`: unordered. */
export type Ordering = 'none' | 'key' | 'subscription'

/** `paused` is an operator's, `disabled` Hooktide's or the endpoint's (410). Neither is attempted. */
export type SubscriptionStatus = 'active' | 'paused' | 'disabled'

/** A reference, never a secret: `env:NAME`, `file:PATH` or `kafka:ID`. Signs from `fromMs` until `untilMs` (epoch, both optional). */
export interface SecretReference {
  readonly ref: string
  readonly fromMs?: number
  readonly untilMs?: number
}

export interface RetryOverride {
  /** Attempts in all, the first one included. */
  readonly maxAttempts?: number
  readonly baseMs?: number
  readonly factor?: number
  readonly capMs?: number
}

/** The value of a `subscriptions` record (schemas/subscription.json, version 1). */
export interface Subscription extends EndpointSettings {
  readonly v: 1
  readonly id: string
  readonly tenant: string
  readonly url: string
  /** Event types: exact, a prefix with a final `.*`, or `*`. */
  readonly types: readonly string[]
  /** Of the events of these types only those that pass (docs/filters.md, `compileFilter`). */
  readonly filter?: Readonly<Record<string, unknown>>
  /** What is sent in place of the event's body (docs/transformations.md, `compileTransformation`). */
  readonly transform?: Transformation
  readonly ordering: Ordering
  readonly status: SubscriptionStatus
  readonly statusReason?: string
  /** Newest first; every one whose window holds now signs. */
  readonly secrets: readonly SecretReference[]
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly maxInFlight?: number
  readonly retry?: RetryOverride
  readonly onDead?: 'continue' | 'block'
  /** What becomes of its events while it is disabled: `hold` (default) parks them, `drop` cancels them. */
  readonly whileDisabled?: 'hold' | 'drop'
  /** Disabled after failing for so long without a success; 0: never. Left out: subscriptions.disableAfter. */
  readonly disableAfterMs?: number
  /** Unordered only: over how many lanes its deliveries are spread; 1 by default. For a subscription too large for one lane. */
  readonly spread?: number
  readonly description?: string
  readonly createdAtMs: number
  readonly updatedAtMs: number
}
