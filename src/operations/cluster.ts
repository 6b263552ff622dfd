import type { Kafka, TopicAdmin } from '../ports.ts'

/** One Kafka cluster, for one command or for a service. */
export interface Cluster {
  readonly kafka: Kafka
  readonly admin: TopicAdmin
  close(): Promise<void>
}
