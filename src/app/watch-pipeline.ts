import type { ProcessObserver } from '../observe/observer.ts'
import type { Pipeline } from '../pipeline/assemble.ts'
import type { PipelineSettings } from '../pipeline/pipeline-settings.ts'
import type { Clock, Kafka } from '../ports.ts'
import { type DeliveriesEnds, readLag, readVitals } from './vitals.ts'

/** Registers what the pipeline says of itself. `startLag` when it runs: asking costs requests. */
export function watchPipeline(
  pipeline: Pipeline,
  settings: PipelineSettings,
  deps: { readonly kafka: Kafka; readonly clock: Clock; readonly observer: ProcessObserver; readonly worst: number },
): { startLag(): () => void; close(): Promise<void> } {
  const { kafka, clock, observer, worst } = deps
  let ends: DeliveriesEnds = null
  const remove = observer.registerVitals(() =>
    readVitals({ pipeline, clock, lanes: settings.lanes, worst, ends: () => ends }),
  )
  const reader = kafka.reader()
  return {
    startLag: () =>
      observer.registerLag(async () => {
        try {
          const { lag, deliveries } = await readLag(settings, kafka, reader)
          ends = deliveries
          return lag
        } catch (error) {
          // An old end is a lie: with the broker away nobody knows the backlog.
          ends = null
          throw error
        }
      }),
    async close() {
      remove()
      await reader.close()
    },
  }
}
