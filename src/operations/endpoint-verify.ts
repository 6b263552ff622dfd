import type { Config } from '../config.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Clock } from '../ports.ts'
import type { Cluster } from './cluster.ts'
import { topicNames } from './names.ts'
import { readLatest } from './read-topic.ts'
import type { SubscriptionStore } from './subscription-store.ts'
import type { EndpointTools } from './tools.ts'

export interface VerifyParts {
  readonly cluster: Pick<Cluster, 'kafka'>
  readonly config: Config
  readonly clock: Clock
  readonly endpoints: EndpointTools
  readonly store: Pick<SubscriptionStore, 'read' | 'write'>
}

export interface Verified {
  readonly id: string
  readonly verified: boolean
  /** Why not; '' when it is. */
  readonly detail: string
  /** As it stands in the table now. */
  readonly subscription: Subscription
}

const unverifiedReason = 'endpoint not verified: '

/** As it is written before its endpoint has answered: it is matched, and what comes for it waits. */
export function unverified(subscription: Subscription, why = 'it has not answered a challenge yet'): Subscription {
  return { ...subscription, status: 'paused', statusReason: `${unverifiedReason}${why}`.slice(0, 1000) }
}

/** Somebody else's pause is not ours to end. */
export function waitsForVerification({ status, statusReason = '' }: Subscription): boolean {
  return status === 'paused' && statusReason.startsWith(unverifiedReason)
}

/**
 * Sends each endpoint a signed challenge, one after the other. Who answers is active from now on, if the pause was for that;
 * who does not stays paused with the reason. One that is delivered to already is only reported on.
 */
export async function verifyEndpoints(parts: VerifyParts, subscriptions: readonly Subscription[]): Promise<Verified[]> {
  if (subscriptions.length === 0) return []
  const { cluster, config, clock, endpoints, store } = parts
  const reader = cluster.kafka.reader()
  let sealed: Awaited<ReturnType<typeof readLatest>>
  try {
    sealed = await readLatest(reader, topicNames(config).secrets)
  } finally {
    await reader.close()
  }
  const records = [...sealed.values()].map(({ record }) => record)
  const results: Verified[] = []
  for (const before of subscriptions) {
    const problem = await endpoints.challenge(config, before, records)
    // It may have been changed while its endpoint was asked: what was asked is then no longer what stands there.
    const now = (await store.read()).get(before.id)
    if (now?.ok !== true || now.value.updatedAtMs !== before.updatedAtMs) {
      results.push({ id: before.id, verified: false, detail: 'it was changed meanwhile', subscription: before })
      continue
    }
    let subscription = before
    if (waitsForVerification(before)) {
      const { statusReason: _, ...rest } = before
      subscription = problem === null ? { ...rest, status: 'active' } : unverified(before, problem)
      subscription = { ...subscription, updatedAtMs: clock.now() }
      await store.write([{ id: before.id, subscription }])
    }
    results.push({ id: before.id, verified: problem === null, detail: problem ?? '', subscription })
  }
  return results
}
