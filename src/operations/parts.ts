import type { Config } from '../config.ts'
import type { Clock, Kafka, StateStore, TopicAdmin } from '../ports.ts'
import type { ControlStore } from './control-store.ts'
import type { Progress } from './progress.ts'
import type { SubscriptionStore } from './subscription-store.ts'
import type { EndpointTools, SecretTools } from './tools.ts'

/** What the operations over Kafka are made of. */
export interface OperationParts {
  readonly config: Config
  readonly clock: Clock
  readonly kafka: Kafka
  readonly admin: TopicAdmin
  readonly subscriptions: SubscriptionStore
  readonly control: ControlStore
  readonly secrets: SecretTools
  readonly endpoints: EndpointTools
  /** Null: this process has no delivery state. */
  readonly state: StateStore | null
  readonly progress: Progress
  /** Long work ends with what it has when this is aborted. */
  readonly signal: AbortSignal
  /** Scans and jobs end with a cursor after this; null: they take as long as it takes. */
  readonly patienceMs: number | null
  fetchText(url: string, timeoutMs: number): Promise<string>
}
