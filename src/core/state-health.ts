import type { Attempt } from './attempt.ts'

/**
 * What the attempts of a subscription in one lane say of its endpoint, in the order of the log. Per lane, because the
 * order between lanes is nobody's: a subscription spread over several has one for each.
 */
export interface HealthRow {
  readonly subscriptionId: string
  readonly lane: number
  readonly tenant: string
  readonly succeeded: number
  readonly failed: number
  readonly lastSuccessMs: number | null
  readonly lastSuccessOffset: number | null
  readonly lastFailureMs: number | null
  readonly lastFailureOffset: number | null
  readonly lastError: string | null
  readonly consecutive: number
  readonly failingSinceMs: number | null
}

/** Null: the attempt says nothing of the endpoint (settled without a POST, or interrupted). */
export function isSuccess({ outcome }: Pick<Attempt, 'outcome'>): boolean | null {
  if (outcome === null || outcome === 'interrupted') return null
  return outcome === 'delivered'
}

/** The next attempt of the lane, in log order and never twice. */
export function foldHealth(row: HealthRow | null, lane: number, offset: number, attempt: Attempt): HealthRow | null {
  const success = isSuccess(attempt)
  if (success === null) return row
  const { subscriptionId, tenant } = attempt
  const before = row ?? emptyHealth(subscriptionId, lane, tenant)
  const endedMs = attempt.startedAtMs + Math.round(attempt.durationMs)
  if (success) {
    const succeeded = before.succeeded + 1
    return { ...before, succeeded, lastSuccessMs: endedMs, lastSuccessOffset: offset, ...notFailing }
  }
  return {
    ...before,
    failed: before.failed + 1,
    lastFailureMs: endedMs,
    lastFailureOffset: offset,
    lastError: attempt.error,
    consecutive: before.consecutive + 1,
    failingSinceMs: before.failingSinceMs ?? attempt.startedAtMs,
  }
}

/** The attempts that a lane's log has forgotten, and when the oldest of those failures that are left began. */
export interface Forgotten {
  readonly start: number
  readonly succeeded: number
  readonly failed: number
  readonly oldestFailureMs: number | null
}

/** What folding only the rest of the log would have given; null: nothing is left. */
export function forgetHealth(row: HealthRow, gone: Forgotten): HealthRow | null {
  const succeeded = row.succeeded - gone.succeeded
  const failed = row.failed - gone.failed
  if (succeeded <= 0 && failed <= 0) return null
  const successGone = row.lastSuccessOffset !== null && row.lastSuccessOffset < gone.start
  const failureGone = row.lastFailureOffset !== null && row.lastFailureOffset < gone.start
  // A run of failures that began before the start has only failures left behind it.
  const consecutive = Math.min(row.consecutive, failed)
  return {
    ...row,
    succeeded,
    failed,
    ...(successGone ? { lastSuccessMs: null, lastSuccessOffset: null } : {}),
    ...(failureGone ? { lastFailureMs: null, lastFailureOffset: null, lastError: null } : {}),
    consecutive,
    failingSinceMs: consecutive === row.consecutive ? row.failingSinceMs : gone.oldestFailureMs,
  }
}

const notFailing = { consecutive: 0, failingSinceMs: null } as const

function emptyHealth(subscriptionId: string, lane: number, tenant: string): HealthRow {
  return {
    subscriptionId,
    lane,
    tenant,
    succeeded: 0,
    failed: 0,
    lastSuccessMs: null,
    lastSuccessOffset: null,
    lastFailureMs: null,
    lastFailureOffset: null,
    lastError: null,
    ...notFailing,
  }
}
