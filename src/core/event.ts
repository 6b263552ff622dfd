import type { Claim } from './claim.ts'
import type { EventIdentity } from './delivery-id.ts'

/** What a producer wrote, read and checked. The body is the record's value byte for byte, whatever the format. */
export interface Event {
  /** The producer's id, or `topic/partition/offset` where none was given. */
  readonly id: string
  /** CloudEvents source; null for the other formats. */
  readonly source: string | null
  readonly identity: EventIdentity
  readonly type: string
  readonly tenant: string
  readonly orderingKey: string | null
  readonly contentType: string
  /** The record's timestamp (epoch ms); 0 when it has none. */
  readonly timeMs: number
  readonly traceparent: string | null
  readonly body: Buffer
  /** Where the body is, when it is too large for the record; `body` is empty then. */
  readonly claim?: Claim
}

export interface EventLimits {
  readonly maxBytes: number
  readonly maxHeaders: number
  /** Of a claimed body. */
  readonly maxClaimBytes?: number
}

/** Why an event can't be read: `ht-rejected-code` of its `rejected` record. */
export type EventProblem =
  | 'null-value'
  | 'too-large'
  | 'too-many-headers'
  | 'not-utf8'
  | 'missing-type'
  | 'missing-attribute'
  | 'bad-type'
  | 'bad-id'
  | 'bad-source'
  | 'bad-tenant'
  | 'bad-key'
  | 'bad-content-type'
  | 'bad-claim'
  | 'bad-json'
  | 'unsupported-format'

export type EventResult =
  | { readonly ok: true; readonly value: Event }
  | { readonly ok: false; readonly reason: string; readonly code: EventProblem }
