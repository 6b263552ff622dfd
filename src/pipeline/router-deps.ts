import type { EventLimits } from '../core/event.ts'
import type { Tracer } from '../ports/tracer.ts'
import type { Clock, GroupConsumer, Kafka, LogReader, Observer } from '../ports.ts'
import type { JobControl } from './job-log.ts'
import type { Subscriptions } from './subscriptions.ts'

export interface RouterLimits extends EventLimits {
  /** Records waiting to be matched, per partition: above it the partition pauses. */
  readonly maxWaitingRecords: number
  readonly maxWaitingBytes: number
  /** Bytes of deliveries written in one go: a large fan-out is cut into several. */
  readonly maxWriteBytes: number
  readonly commitEveryMs: number
}

/** What the role `router` works with: its streams and the jobs alike. */
export interface RouterDeps {
  readonly kafka: Kafka
  readonly consumer: GroupConsumer
  readonly reader: LogReader
  readonly group: string
  /** Group of those who deliver. */
  readonly deliverers: string
  readonly clock: Clock
  readonly observer: Observer
  readonly tracer: Tracer | null
  readonly subscriptions: Subscriptions
  readonly control: JobControl
  /** Of jobs: it reads while a stream's questions must not wait. */
  readonly jobReader: LogReader
  readonly topics: {
    readonly events: readonly string[]
    readonly deliveries: string
    readonly dead: string
    readonly attempts: string
    readonly control: string
    readonly laneState: string
    readonly rejected: string
  }
  readonly lanes: number
  readonly rejectedPartitions: number
  readonly limits: RouterLimits
  onFatal(error: Error): void
}
