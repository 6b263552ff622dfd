import type { FailingMark } from './lane-state.ts'
import type { Outcome, Reply } from './outcome.ts'
import type { Subscription } from './subscription.ts'

export interface FailingPolicy {
  /** Without a success for so long: disabled; 0: never. A subscription's own `disableAfterMs` goes first. */
  readonly disableAfterMs: number
  /** Without a success for so long: told. */
  readonly failingAfterMs: number
}

/** What one more failure means. `write`: the mark should be written down. */
export interface FailingVerdict {
  readonly mark: FailingMark
  readonly write: boolean
  readonly step: 'none' | 'failing' | 'disable'
}

/** Does this say that the endpoint does not take deliveries, that it does, or nothing of it? */
export function verdictOn(outcome: Outcome, reply: Reply): 'ok' | 'failed' | 'unknown' {
  if (outcome.t === 'delivered') return 'ok'
  // 410 has its own rule; what only we are to blame for is no fault of the endpoint.
  if (outcome.t === 'gone' || outcome.t === 'interrupted') return 'unknown'
  if (reply.t === 'failure' && (reply.class === 'secret' || reply.class === 'body' || reply.class === 'local'))
    return 'unknown'
  return 'failed'
}

/**
 * A row of failures without a success in between. It begins anew when the subscription was changed since, or when nothing
 * was attempted for a fifth of the time: two failures with silence between them say nothing of the days in between.
 */
export function failedAgain(
  known: { readonly mark: FailingMark; readonly writtenMs: number } | null,
  subscription: Subscription,
  nowMs: number,
  policy: FailingPolicy,
): FailingVerdict {
  const disableAfterMs = subscription.disableAfterMs ?? policy.disableAfterMs
  const scaleMs = disableAfterMs === 0 ? 5 * dayMs : disableAfterMs
  const before = known?.mark ?? null
  const fresh =
    before === null ||
    before.sinceMs < subscription.updatedAtMs ||
    nowMs - before.lastMs > scaleMs / 5 + policy.failingAfterMs
  const mark: FailingMark = fresh
    ? {
        v: 1,
        kind: 'failing',
        subscriptionId: subscription.id,
        sinceMs: nowMs,
        lastMs: nowMs,
        failures: 1,
        told: false,
      }
    : { ...before, lastMs: Math.max(before.lastMs, nowMs), failures: before.failures + 1 }
  const forMs = nowMs - mark.sinceMs
  if (disableAfterMs > 0 && forMs >= disableAfterMs && mark.failures > 1)
    return { mark: { ...mark, told: true }, write: true, step: 'disable' }
  if (!mark.told && mark.failures > 1 && forMs >= policy.failingAfterMs)
    return { mark: { ...mark, told: true }, write: true, step: 'failing' }
  // Often enough that a new owner knows there was no silence, seldom enough to cost nothing.
  const write = fresh || known === null || nowMs - known.writtenMs >= scaleMs / 50
  return { mark, write, step: 'none' }
}

const dayMs = 86_400_000
