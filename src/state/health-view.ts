import type { Kysely } from 'kysely'
import { type DeliveryStatus, deliveryStatuses, type SubscriptionHealth } from '../core/state-view.ts'
import type { FlatHealth, StateTables } from './tables.ts'

/** Health of these subscriptions, by id; those that the state does not know are left out. */
export async function healthOf(db: Kysely<StateTables>, ids: readonly string[]): Promise<SubscriptionHealth[]> {
  if (ids.length === 0) return []
  const counts = await db.selectFrom('counts').selectAll().where('subscription', 'in', ids).execute()
  const rows = await db.selectFrom('health').selectAll().where('subscription', 'in', ids).execute()
  return [...new Set(ids)].sort().flatMap((id) => {
    const lanes = rows.filter(({ subscription }) => subscription === id)
    const mine = counts.filter(({ subscription }) => subscription === id)
    const tenant = mine[0]?.tenant ?? lanes[0]?.tenant
    if (tenant === undefined) return []
    const deliveries = Object.fromEntries(deliveryStatuses.map((status) => [status, 0])) as Record<
      DeliveryStatus,
      number
    >
    for (const { status, n } of mine) deliveries[deliveryStatuses[status] as DeliveryStatus] += n
    return [{ subscriptionId: id, tenant, deliveries, ...joinLanes(lanes) }]
  })
}

/** Of several lanes: sums, and the latest of what has a time. */
function joinLanes(lanes: readonly FlatHealth[]) {
  const failedLast = lanes.reduce<FlatHealth | null>(
    (best, lane) => ((lane.last_failure_ms ?? -1) > (best?.last_failure_ms ?? -1) ? lane : best),
    null,
  )
  const sum = (of: (lane: FlatHealth) => number) => lanes.reduce((total, lane) => total + of(lane), 0)
  const successes = lanes.flatMap(({ last_success_ms }) => last_success_ms ?? [])
  const failing = lanes.flatMap(({ failing_since_ms }) => failing_since_ms ?? [])
  return {
    succeeded: sum(({ succeeded }) => succeeded),
    failed: sum(({ failed }) => failed),
    lastSuccessMs: successes.length === 0 ? null : Math.max(...successes),
    lastFailureMs: failedLast?.last_failure_ms ?? null,
    lastError: failedLast?.last_error ?? null,
    consecutiveFailures: sum(({ consecutive }) => consecutive),
    failingSinceMs: failing.length === 0 ? null : Math.min(...failing),
  }
}
