import type { Ladder } from './ladder.ts'
import type { Outcome } from './outcome.ts'
import { type RetryPolicy, retryDelayMs } from './retry-policy.ts'

/** What follows from an attempt. Deciding it is pure; the lane applies it. */
export type Settlement =
  | { readonly t: 'done' }
  /** To `tier` (index into the ladder), due at `dueMs` (epoch). */
  | { readonly t: 'scheduled'; readonly dueMs: number; readonly tier: number; readonly error: string }
  | { readonly t: 'dead'; readonly reason: DeadReason; readonly error: string }
  | { readonly t: 'cancelled'; readonly reason: string }
  /** Nothing happened as far as the log is concerned: no attempt spent, no offset marked. */
  | { readonly t: 'released'; readonly reason: string }

export type DeadReason = 'exhausted' | 'rejected' | 'gone' | 'blocked' | 'unreadable' | 'operator'

export function settle(input: {
  readonly outcome: Outcome
  /** POSTs made, this one included. */
  readonly attempt: number
  readonly policy: RetryPolicy
  readonly ladder: Ladder
  readonly nowMs: number
  readonly random: number
}): Settlement {
  const { outcome, attempt, policy, ladder } = input
  switch (outcome.t) {
    case 'delivered':
      return { t: 'done' }
    case 'interrupted':
      return { t: 'released', reason: outcome.error }
    case 'rejected':
      return { t: 'dead', reason: 'rejected', error: outcome.error }
    case 'gone':
      return { t: 'dead', reason: 'gone', error: '410' }
    case 'blocked':
      return { t: 'dead', reason: 'blocked', error: outcome.error }
    case 'retryable': {
      if (attempt >= policy.maxAttempts) return { t: 'dead', reason: 'exhausted', error: outcome.error }
      const delayMs = retryDelayMs(policy, ladder, attempt, outcome.retryAfterMs, input.random)
      const tier = ladder.pick(delayMs)
      if (tier === null) throw new RangeError(`delay ${delayMs} is below the ladder's floor ${ladder.floorMs}`)
      return { t: 'scheduled', dueMs: Math.ceil(input.nowMs + delayMs), tier, error: outcome.error }
    }
    default:
      return outcome satisfies never
  }
}
