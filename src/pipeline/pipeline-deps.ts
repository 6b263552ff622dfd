import type { Control } from '../core/control.ts'
import type { LaneState } from '../core/lane-state.ts'
import type { InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Objects } from '../ports/objects.ts'
import type { Tracer } from '../ports/tracer.ts'
import type { Accesses, Clock, Kafka, Observer, Secrets, Sender } from '../ports.ts'
import type { Troubles } from './troubles.ts'

/** The outside world of a pipeline. */
export interface PipelineDeps {
  readonly kafka: Kafka
  readonly clock: Clock
  readonly observer: Observer
  readonly sender: Sender
  readonly secrets: Secrets
  readonly accesses: Accesses
  /** Null: no object store is configured. */
  readonly objects: Objects | null
  readonly tracer: Tracer | null
  decodeSubscription(record: Pick<InRecord, 'key' | 'value'>): Result<Subscription>
  decodeControl(record: Pick<InRecord, 'key' | 'value'>): Result<Control>
  decodeLaneState(record: Pick<InRecord, 'key' | 'value'>): Result<LaneState>
  /** Where a subscription's endpoint is, for the cap per origin. */
  originOf(url: string): string
  readonly troubles: Troubles
  onFatal(error: Error): void
}
