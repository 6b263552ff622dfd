import { describeBody, type PostEntry } from '../sim/receiver.ts'
import type { FromLogs } from './collect.ts'

export interface Corrected {
  readonly posts: PostEntry[]
  /** POSTs that the receiver got to read only when their sender had given them up. */
  readonly late: number
  /** Attempts that failed before anything reached the receiver: no connection in time. */
  readonly unseen: number
}

/**
 * What the receiver could not see as it was, on a machine without a core to spare. Both are attempts whose sender logged
 * that no answer came: one that it had given up before the receiver got to read it (it looks as if it was sent when its
 * settlement was committed already: it began when its sender says so), and one that never got through.
 */
export function withUnheard(posts: readonly PostEntry[], { settled, places }: FromLogs): Corrected {
  const logged = new Map(settled.map(({ attempt }) => [`${attempt.deliveryId} ${attempt.attempt}`, attempt]))
  const seen = new Set<string>()
  let late = 0
  const corrected = posts.map((post) => {
    const key = `${post.deliveryId} ${post.attempt}`
    const first = !seen.has(key)
    seen.add(key)
    const attempt = logged.get(key)
    if (!first || post.outcome !== 'failure closed' || attempt === undefined || attempt.status !== null) return post
    if (attempt.startedAtMs + attempt.durationMs > post.startMs) return post
    late++
    return { ...post, startMs: attempt.startedAtMs, endMs: attempt.startedAtMs + attempt.durationMs }
  })
  const bodies = new Map(places.map(({ delivery }) => [delivery.id, delivery]))
  const unseen = [...logged].flatMap(([key, attempt]): PostEntry[] => {
    const delivery = bodies.get(attempt.deliveryId)
    if (seen.has(key) || delivery === undefined || attempt.outcome !== 'retryable' || attempt.status !== null) return []
    return [
      {
        deliveryId: attempt.deliveryId,
        subscription: attempt.subscriptionId,
        ...describeBody(delivery.body),
        attempt: attempt.attempt,
        url: attempt.url,
        process: 'unseen',
        incarnation: 0,
        startMs: attempt.startedAtMs,
        startLocalMs: attempt.startedAtMs,
        startWallMs: attempt.startedAtMs,
        endMs: attempt.startedAtMs + attempt.durationMs,
        acceptedMs: null,
        retryAfterMs: null,
        outcome: `failure ${attempt.errorClass}`,
      },
    ]
  })
  return { posts: [...corrected, ...unseen].sort((a, b) => a.startMs - b.startMs), late, unseen: unseen.length }
}
