import type { Evidence, Place } from './evidence.ts'
import type { PostEntry } from './receiver.ts'

/**
 * A delivery that is sent again goes through everything once more under its old id. Here the second round gets an id of its
 * own, and must come to its end like any other delivery: attempts from 1, moved once, nothing repeated without a reason.
 */
export function inRounds(evidence: Evidence): Evidence {
  const redriven = evidence.operated?.redriven
  if (redriven === undefined || redriven.size === 0) return evidence
  const begins = (id: string) => redriven.get(id) ?? Number.POSITIVE_INFINITY
  const highest = new Map<string, number>()
  const post = (entry: PostEntry): PostEntry => {
    const { deliveryId: id, attempt } = entry
    // Whoever woke up late may still repeat an attempt of the first round.
    if (entry.startMs < begins(id) || attempt > (highest.get(id) ?? 0) + 1) return entry
    highest.set(id, Math.max(attempt, highest.get(id) ?? 0))
    return { ...entry, deliveryId: secondRound(id), again: 1 }
  }
  const place = (entry: Place): Place => {
    const { id, origin } = entry.delivery
    const second = entry.kind === 'deliveries' ? origin.stream.startsWith('redrive:') : entry.appendedMs >= begins(id)
    return second ? { ...entry, delivery: { ...entry.delivery, id: secondRound(id) } } : entry
  }
  const places = evidence.places.map(place)
  return {
    ...evidence,
    posts: evidence.posts.map(post),
    places,
    settled: evidence.settled.map((s) =>
      s.appendedMs < begins(s.attempt.deliveryId)
        ? s
        : { ...s, attempt: { ...s.attempt, deliveryId: secondRound(s.attempt.deliveryId) } },
    ),
  }
}

export function secondRound(id: string): string {
  return `${id}~1`
}

export function againOf(id: string): number | undefined {
  return id.endsWith('~1') ? 1 : undefined
}

export function firstRound(id: string): string {
  return id.replace(/~1$/, '')
}
