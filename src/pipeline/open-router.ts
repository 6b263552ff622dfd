import type { GroupConsumer } from '../ports.ts'
import type { PipelineDeps } from './pipeline-deps.ts'
import type { PipelineSettings } from './pipeline-settings.ts'
import { Router } from './router.ts'
import type { RouterDeps } from './router-deps.ts'

/** The role `router` of a process, where it has it. */
export function openRouter(
  settings: PipelineSettings,
  { kafka, clock, observer, tracer, onFatal }: PipelineDeps,
  shared: Pick<RouterDeps, 'subscriptions' | 'control' | 'reader' | 'jobReader'>,
): { readonly router: Router | null; readonly consumer: GroupConsumer | null } {
  if (!settings.roles.router) return { router: null, consumer: null }
  const { groups, topics, lanes, rejectedPartitions } = settings
  const consumer = kafka.consumer({
    group: groups.router,
    topics: topics.events,
    assign: 'partitions',
    drainMs: settings.drainMs,
  })
  const router = new Router({
    ...shared,
    ...{ kafka, consumer, clock, observer, tracer, topics, lanes, rejectedPartitions, onFatal },
    group: groups.router,
    deliverers: groups.deliverer,
    limits: settings.router,
  })
  return { router, consumer }
}
