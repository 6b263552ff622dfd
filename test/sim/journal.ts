import { checkEnd, checkLog } from './check-log.ts'
import { checkOrders } from './check-orders.ts'
import { checkPosts } from './check-posts.ts'
import type { Evidence } from './evidence.ts'
import { inRounds } from './rounds.ts'

/**
 * The verdict on a run: what was POSTed and what the log holds, against the promises of the design (section 8). Each
 * line is one broken promise, told so that a person can find it in the run; none means that all were kept.
 */
export function checkJournal(told: Evidence, options: { readonly ended: boolean }): string[] {
  const evidence = inRounds(told)
  // (1) is judged at the end: until then what is not there may still come.
  return [
    ...checkPosts(evidence),
    ...checkLog(evidence),
    ...checkOrders(evidence),
    ...(options.ended ? checkEnd(evidence) : []),
  ]
}
