import { type Config, type LoadedConfig, loadConfig } from '../config.ts'
import type { Cluster } from '../operations/cluster.ts'
import type { Operations } from '../operations/contract.ts'
import type { CliDeps } from './deps.ts'
import { apiUrl, type GlobalOptions, openOperations } from './open-operations.ts'

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

export function createContext(deps: CliDeps, globals: () => GlobalOptions): CommandContext {
  const context: CommandContext = {
    deps,
    load() {
      const path = globals().config ?? (deps.env.HOOKTIDE_CONFIG || undefined)
      return loadConfig({ env: deps.env, ...(path === undefined ? {} : { path }) })
    },
    async withCluster(run) {
      const { config } = context.load()
      const cluster = await deps.connect(config)
      try {
        return await run(cluster, config)
      } finally {
        await cluster.close()
      }
    },
    withOperations: (run) => openOperations(context, globals(), run),
    throughApi: () => apiUrl(deps, globals()) !== undefined,
    print: (text) => deps.stdout.write(`${text}\n`),
    printJson: (value) => deps.stdout.write(`${JSON.stringify(value, null, 2)}\n`),
    note: (text) => deps.stderr.write(`${text}\n`),
  }
  return context
}
