import type { Ladder } from './ladder.ts'
import type { RetryOverride } from './subscription.ts'

export interface RetryPolicy {
  /** Attempts in all, the first one included. */
  readonly maxAttempts: number
  readonly baseMs: number
  readonly factor: number
  readonly capMs: number
  /** Longest `Retry-After` that is obeyed. */
  readonly retryAfterCapMs: number
}

/** The policy of one subscription. */
export function policyFor(policy: RetryPolicy, override: RetryOverride | undefined): RetryPolicy {
  return override === undefined ? policy : { ...policy, ...override }
}

/** Top of the jitter range after `attemptsMade` POSTs: base × factor^(n−1), capped. */
export function ceilingMs(policy: RetryPolicy, attemptsMade: number): number {
  return Math.min(policy.capMs, policy.baseMs * policy.factor ** Math.max(0, attemptsMade - 1))
}

/**
 * Delay before the next attempt: full jitter between the ladder's floor and the ceiling. Where the ceiling leaves less
 * than half a floor of room, the range is widened to that, so that a crowd that failed together does not come back together.
 * `random` in [0, 1). A hint of the endpoint (`Retry-After`) only ever lengthens the wait.
 */
export function retryDelayMs(
  policy: RetryPolicy,
  ladder: Ladder,
  attemptsMade: number,
  hintMs: number | null,
  random: number,
): number {
  const floor = ladder.floorMs
  const room = Math.max(ceilingMs(policy, attemptsMade) - floor, floor / 2)
  const backoff = Math.round(floor + room * random)
  const hint = hintMs === null ? 0 : Math.min(Math.max(hintMs, 0), policy.retryAfterCapMs)
  return Math.max(backoff, hint)
}
