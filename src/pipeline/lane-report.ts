import type { Settlement } from '../core/settle.ts'
import type { Observer } from '../ports.ts'
import type { AttemptFacts } from './lane-records.ts'
import type { LogQuota } from './log-quota.ts'
import type { Work } from './work.ts'

/** One wide line and one count per settled attempt; of successes as many lines as `successes` allows. */
export function reportSettlement(
  { observer, successes }: { readonly observer: Observer; readonly successes: LogQuota },
  lane: number,
  work: Work,
  settlement: Settlement,
  facts: AttemptFacts,
): void {
  const { delivery } = work
  const { reply, outcome } = facts
  observer.count('attempts', 1, { outcome: outcome?.t ?? 'none', settlement: settlement.t })
  if (reply !== null) observer.time('attempt', reply.durationMs, { outcome: outcome?.t ?? 'none' })
  const leftOut = settlement.t === 'done' ? successes.admit() : 0
  if (leftOut === null) return
  const fields = {
    deliveryId: delivery.id,
    subscriptionId: delivery.subscriptionId,
    tenant: delivery.tenant,
    eventId: delivery.eventId,
    eventType: delivery.eventType,
    attempt: facts.attempt,
    settlement: settlement.t,
    outcome: outcome?.t,
    status: reply?.t === 'response' ? reply.status : undefined,
    errorClass: reply?.t === 'failure' ? reply.class : undefined,
    error: reply?.t === 'failure' ? reply.detail : undefined,
    durationMs: reply === null ? undefined : Math.round(reply.durationMs),
    dueMs: settlement.t === 'scheduled' ? settlement.dueMs : undefined,
    reason: settlement.t === 'dead' || settlement.t === 'cancelled' ? settlement.reason : undefined,
    lane,
    leftOut: leftOut === 0 ? undefined : leftOut,
  }
  if (settlement.t === 'cancelled') observer.log('info', 'delivery.cancelled', fields)
  else observer.log(settlement.t === 'dead' ? 'warn' : 'info', 'delivery.attempted', fields)
}
