import type { Settled } from '../sim/evidence.ts'
import type { PostEntry } from '../sim/receiver.ts'
import type { Struck } from './fleet.ts'

export interface Duplicates {
  /** The same attempt once more: it was open at a fault … */
  readonly open: number
  /** … or over, and its settlement not committed. */
  readonly uncommitted: number
  /** By a process that was stopped and lost its lanes meanwhile: it was on its way out when it was stopped. */
  readonly zombie: number
  /** Attempts the receiver took and answered with 2xx, but whose answer did not come in time: tried again as they must. */
  readonly unanswered: number
  /** How long before the fault the oldest of the uncommitted ones was over, ms. */
  readonly oldestUncommittedMs: number
  readonly problems: readonly string[]
}

/** After waking, or after the broker is back, what was done meanwhile becomes visible for so long. */
const wakeMs = 1_000

/**
 * Explains every POST that a perfect sender would not have made. A repeat of an attempt needs a fault that struck its
 * sender (or the broker) while it was open or before its settlement was committed; nothing else is an explanation.
 */
export function explainDuplicates(
  posts: readonly PostEntry[],
  settled: readonly Settled[],
  faults: readonly Struck[],
  sessionMs: number,
): Duplicates {
  const problems: string[] = []
  const count = { open: 0, uncommitted: 0, zombie: 0, unanswered: 0 }
  let oldestUncommittedMs = 0
  const last = new Map<string, PostEntry>()
  const accepted = new Map<string, PostEntry>()
  const settledMs = new Map<string, number>()
  for (const { attempt, decidedMs } of settled) {
    if (attempt.settlement !== 'released') settledMs.set(`${attempt.deliveryId} ${attempt.attempt}`, decidedMs)
  }
  const outcomes = new Map(settled.map(({ attempt }) => [`${attempt.deliveryId} ${attempt.attempt}`, attempt]))
  for (const post of posts) {
    const key = `${post.deliveryId} ${post.attempt}`
    const before = last.get(key)
    last.set(key, post)
    if (before !== undefined) {
      const why = explain(before, post, settledMs.get(key) ?? Number.POSITIVE_INFINITY, faults, sessionMs)
      if (why === null) problems.push(`duplicate: ${nameOf(post)} repeats ${nameOf(before)} without a fault`)
      else {
        count[why.t]++
        oldestUncommittedMs = Math.max(oldestUncommittedMs, why.ageMs)
      }
    }
    const taken = accepted.get(post.deliveryId)
    if (taken !== undefined && taken.attempt < post.attempt) {
      const logged = outcomes.get(`${taken.deliveryId} ${taken.attempt}`)
      if (logged?.outcome === 'retryable') count.unanswered++
      else problems.push(`duplicate: ${nameOf(post)} after ${nameOf(taken)} was taken, logged as ${logged?.outcome}`)
    }
    if (post.acceptedMs !== null && !accepted.has(post.deliveryId)) accepted.set(post.deliveryId, post)
  }
  return { ...count, oldestUncommittedMs, problems }
}

function explain(
  before: PostEntry,
  post: PostEntry,
  settledMs: number,
  faults: readonly Struck[],
  sessionMs: number,
): { t: 'open' | 'uncommitted' | 'zombie'; ageMs: number } | null {
  for (const fault of faults) {
    const struckBefore = isOf(fault, before)
    const woken = post.startMs >= fault.atMs && post.startMs <= fault.untilMs + wakeMs
    if (fault.kind === 'stall' && isOf(fault, post) && woken && !isOf(fault, before)) return { t: 'zombie', ageMs: 0 }
    if (!struckBefore || settledMs <= fault.atMs || post.startMs <= fault.atMs) continue
    // What a dead process had sent can be read after its death.
    const reachMs = fault.untilMs + (fault.kind === 'leader' ? sessionMs : wakeMs)
    if (before.startMs > reachMs) continue
    const ageMs = before.endMs === null ? 0 : fault.atMs - before.endMs
    return ageMs > 0 ? { t: 'uncommitted', ageMs } : { t: 'open', ageMs: 0 }
  }
  return null
}

/** A fault of nobody's is everybody's. */
function isOf(fault: Struck, post: PostEntry): boolean {
  if (fault.process === null) return true
  return fault.process === post.process && fault.incarnation === post.incarnation
}

function nameOf(post: PostEntry): string {
  const at = `${post.subscription}/${post.key ?? '-'}#${post.sequence}`
  return `${at} attempt ${post.attempt} at ${post.startMs.toFixed(1)} by ${post.process}.${post.incarnation} (${post.outcome})`
}
