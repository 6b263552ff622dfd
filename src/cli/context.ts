import type { Config, LoadedConfig } from '../config.ts'
import type { Cluster } from '../operations/cluster.ts'
import type { Operations } from '../operations/contract.ts'
import type { CliDeps } from './deps.ts'

/** What every command has: the edge, the configuration of this call, a cluster when it wants one. */
export interface CommandContext {
  readonly deps: CliDeps
  /** Defaults, --config FILE (or HOOKTIDE_CONFIG), environment. Throws `config.invalid`. */
  load(): LoadedConfig
  /** Connects, runs, closes whatever happens. */
  withCluster<T>(run: (cluster: Cluster, config: Config) => Promise<T>): Promise<T>
  /** What operators do: through the API of --api-url, else on Kafka itself. */
  withOperations<T>(run: (operations: Operations) => Promise<T>): Promise<T>
  /** Do operations go through an API? */
  throughApi(): boolean
  print(text: string): void
  printJson(value: unknown): void
  /** A line for people on stderr, so that stdout stays clean for pipes. */
  note(text: string): void
}
