import { loadConfig } from '../config.ts'
import type { CommandContext } from './context.ts'
import type { CliDeps } from './deps.ts'
import { apiUrl, type GlobalOptions, openOperations } from './open-operations.ts'

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
