import { OperationalEvents } from '../pipeline/operational-events.ts'
import type { PipelineSettings } from '../pipeline/pipeline-settings.ts'
import { SubscriptionLife } from '../pipeline/subscription-life.ts'
import type { Subscriptions } from '../pipeline/subscriptions.ts'
import type { Clock, Kafka, Observer } from '../ports.ts'

/** What becomes of subscriptions that fail: written into the table and told as events. `table`: once there is a pipeline. */
export function openSubscriptionLife(parts: {
  readonly kafka: Kafka
  readonly clock: Clock
  readonly observer: Observer
  readonly settings: PipelineSettings
  readonly table: () => Subscriptions
}): { readonly life: SubscriptionLife; close(): Promise<void> } {
  const { kafka, clock, observer, settings, table } = parts
  const producer = kafka.producer()
  const events = new OperationalEvents({
    kafka,
    producer,
    clock,
    observer,
    topic: settings.topics.events[0] as string,
    prefix: settings.reservedTypes,
    wanted: (tenant, type) => table().match(tenant, type).length > 0,
  })
  const life = new SubscriptionLife({
    topic: settings.topics.subscriptions,
    producer,
    clock,
    observer,
    events,
    current: (id) => table().get(id),
  })
  return {
    life,
    async close() {
      life.stop()
      events.stop()
      await producer.close()
    },
  }
}
