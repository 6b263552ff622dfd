import type { Settled } from '../sim/evidence.ts'
import type { PostEntry } from '../sim/receiver.ts'

/**
 * A POST that its sender had given up before the receiver got to read it: on a machine without a core to spare it looks
 * as if it was sent when its settlement was committed already. It began when its sender says so. Only the first POST of
 * an attempt, unanswered, whose sender logged that no answer came.
 */
export function withLateArrivals(posts: readonly PostEntry[], settled: readonly Settled[]): [PostEntry[], number] {
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
  return [corrected.sort((a, b) => a.startMs - b.startMs), late]
}
