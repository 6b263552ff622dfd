import type { Attempt } from '../core/attempt.ts'
import type { HealthRow } from '../core/state-health.ts'
import type { AttemptView } from '../core/state-view.ts'
import type { FlatAttempt, FlatHealth } from './tables.ts'
import type { AttemptChange } from './writer.ts'

export function flatAttempt({ lane, offset, loggedMs, delivery, attempt }: AttemptChange): FlatAttempt {
  return {
    lane,
    off: offset,
    delivery,
    number: attempt.attempt,
    logged_ms: loggedMs,
    started_ms: attempt.startedAtMs,
    duration_ms: Math.round(attempt.durationMs),
    status: attempt.status,
    error: attempt.error,
    error_class: attempt.errorClass,
    outcome: attempt.outcome,
    settlement: attempt.settlement,
    due_ms: attempt.dueMs,
    excerpt: attempt.excerpt,
    url: attempt.url,
    origin: attempt.origin,
  }
}

export function attemptView(flat: FlatAttempt, deliveryId: string): AttemptView {
  return {
    deliveryId,
    attempt: flat.number,
    startedAtMs: flat.started_ms,
    durationMs: flat.duration_ms,
    status: flat.status,
    error: flat.error,
    errorClass: flat.error_class as Attempt['errorClass'],
    outcome: flat.outcome as Attempt['outcome'],
    settlement: flat.settlement as Attempt['settlement'],
    dueMs: flat.due_ms,
    excerpt: flat.excerpt,
    url: flat.url,
    lane: flat.lane,
    origin: flat.origin,
    offset: flat.off,
  }
}

export function flatHealth(row: HealthRow): FlatHealth {
  return {
    subscription: row.subscriptionId,
    lane: row.lane,
    tenant: row.tenant,
    succeeded: row.succeeded,
    failed: row.failed,
    last_success_ms: row.lastSuccessMs,
    last_success_off: row.lastSuccessOffset,
    last_failure_ms: row.lastFailureMs,
    last_failure_off: row.lastFailureOffset,
    last_error: row.lastError,
    consecutive: row.consecutive,
    failing_since_ms: row.failingSinceMs,
  }
}

export function healthRow(flat: FlatHealth): HealthRow {
  return {
    subscriptionId: flat.subscription,
    lane: flat.lane,
    tenant: flat.tenant,
    succeeded: flat.succeeded,
    failed: flat.failed,
    lastSuccessMs: flat.last_success_ms,
    lastSuccessOffset: flat.last_success_off,
    lastFailureMs: flat.last_failure_ms,
    lastFailureOffset: flat.last_failure_off,
    lastError: flat.last_error,
    consecutive: flat.consecutive,
    failingSinceMs: flat.failing_since_ms,
  }
}
