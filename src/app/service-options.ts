import type { Env } from '../config/read.ts'
import type { Config } from '../config.ts'
import type { ProcessObserver } from '../observe/observer.ts'
import type { Clock } from '../ports.ts'
import type { Roles } from './pipeline-settings.ts'

/** What a process of the service is given: its configuration, its roles, the edge. */
export interface ServiceOptions {
  readonly config: Config
  readonly roles: Roles
  /** Keep the delivery state here too. */
  readonly projector?: boolean
  /** Serve the HTTP API here too. */
  readonly api?: boolean
  readonly env: Env
  readonly clock: Clock
  readonly observer: ProcessObserver
  /** The service can't go on: end the process with this. */
  onFatal(error: Error): void
}
