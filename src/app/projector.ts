import type { Kafka } from '../ports.ts'
import { Projector } from '../state/projector.ts'
import type { ServiceOptions } from './service-options.ts'
import { foldWorld, openStateHome } from './state-tools.ts'

/**
 * Keeps the delivery state in this process. Small batches: SQLite writes in this thread, and what is about to be posted must
 * not wait long for it. Returns what ends it.
 */
export function startProjector(
  { config, env, clock, observer, roles }: ServiceOptions,
  kafka: Kafka,
): () => Promise<void> {
  const home = openStateHome(config, env, clock)
  const reader = kafka.reader()
  const world = foldWorld(config, reader, { clock, observer })
  const shared = roles.router || roles.deliverer
  const projector = new Projector({ ...world, home, batchRecords: shared ? 250 : 5_000, pollMs: shared ? 500 : 250 })
  projector.start()
  const remove = observer.registerVitals(() => ({ projectorLag: projector.vitals.lag }))
  observer.log('info', 'projector.started', { where: home.where })
  return async () => {
    remove()
    await projector.stop()
    await reader.close()
    await home.close()
  }
}
