import { HooktideError } from '../core/error.ts'
import { roomProblems } from '../core/record-room.ts'
import type { TopicSpec } from '../core/topic-spec.ts'
import { isDrift, planLines, planTopics, type TopicPlan } from '../core/topology.ts'
import type { TopicAdmin } from '../ports.ts'

/** What is, against what should be. Changes nothing. */
export async function readPlan(admin: TopicAdmin, specs: readonly TopicSpec[]): Promise<readonly TopicPlan[]> {
  const [cluster, states] = await Promise.all([admin.cluster(), admin.describe(specs.map(({ name }) => name))])
  return planTopics(specs, states, cluster.brokers.length)
}

/** Carries a plan out: creates, grows, alters. What is refused stays as it is. Never deletes. */
export async function applyPlan(
  admin: TopicAdmin,
  plans: readonly TopicPlan[],
  done: (line: string) => void,
): Promise<void> {
  const missing = plans.filter(({ action }) => action === 'create')
  await admin.create(
    missing.map(({ topic, partitions, replication, changes }) => ({
      topic,
      partitions,
      replication,
      configs: Object.fromEntries(changes.map(({ setting, wanted }) => [setting, wanted])),
    })),
  )
  for (const { topic } of missing) done(`${topic}: created`)
  for (const { topic, action, changes } of plans) {
    if (action === 'create') continue
    const growth = changes.find(({ setting }) => setting === 'partitions')
    if (growth !== undefined) {
      await admin.grow(topic, Number(growth.wanted))
      done(`${topic}: partitions ${growth.actual} → ${growth.wanted}`)
    }
    const settings = changes.filter(({ setting }) => setting !== 'partitions')
    if (settings.length === 0) continue
    await admin.alterConfigs(topic, Object.fromEntries(settings.map(({ setting, wanted }) => [setting, wanted])))
    for (const { setting, actual, wanted } of settings) done(`${topic}: ${setting} ${actual ?? 'unknown'} → ${wanted}`)
  }
}

/**
 * For the start: rejects `topic.missing` or `topic.drift` with every difference. What works, but not as safely as wanted
 * (fewer copies), is returned as warnings. `maxEventBytes`: the largest body that is taken inline; every topic on its way must
 * have room for it.
 */
export async function verifyTopics(
  admin: TopicAdmin,
  specs: readonly TopicSpec[],
  maxEventBytes: number | null = null,
): Promise<readonly string[]> {
  const [cluster, states] = await Promise.all([admin.cluster(), admin.describe(specs.map(({ name }) => name))])
  const plans = planTopics(specs, states, cluster.brokers.length)
  const tooSmall = maxEventBytes === null ? [] : roomProblems(specs, states, maxEventBytes)
  const drifted = plans.filter(isDrift)
  if (drifted.length === 0) {
    if (tooSmall.length === 0) return plans.flatMap(planLines)
    throw new HooktideError(
      'topic.drift',
      `${tooSmall.length} of ${plans.length} topics have no room for the largest event`,
      {
        details: tooSmall,
        remedy: 'Raise max.message.bytes of the topics, or lower router.maxEventBytes.',
      },
    )
  }
  const missing = drifted.filter(({ action }) => action === 'create').length
  const message =
    missing === drifted.length
      ? `${missing} of ${plans.length} topics are missing`
      : `${drifted.length} of ${plans.length} topics are not as they must be`
  const byHand = drifted.some(({ refused }) => refused.some(({ tolerable }) => !tolerable))
  throw new HooktideError(missing > 0 ? 'topic.missing' : 'topic.drift', message, {
    details: [...drifted.flatMap(planLines), ...tooSmall],
    remedy: byHand
      ? 'Run `hooktide topics apply` for what can be changed; for the rest change topics/*.yaml, the configuration or the topic.'
      : 'Run `hooktide topics apply`.',
  })
}
