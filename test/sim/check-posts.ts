import { finalForLines } from './check-orders.ts'
import { type Evidence, type Expected, isLost } from './evidence.ts'
import type { FaultEntry } from './memory-broker.ts'
import { deliveryEvent, eventName, group } from './names.ts'
import type { PostEntry } from './receiver.ts'

/** Faults that may make a lane's owner repeat what was open, or finished and not committed. */
const disturbing: ReadonlySet<string> = new Set([
  'crash',
  'stall',
  'expire',
  'fenced',
  'lostCommit',
  'ambiguousCommit',
  'lateCommit',
  'callFails',
  'leader',
  'coordinator',
  'retention',
  'drain-timeout',
])
/** After a stall or a lost membership a process may go on for so long before it looks. */
const zombieMs = 15_000
/** A settlement is known to its lane before it is in the log. */
const knownBeforeMs = 5_000

export function checkPosts(evidence: Evidence): string[] {
  const byDelivery = group(evidence.posts, (post) => post.deliveryId)
  return [
    ...identities(evidence),
    ...[...byDelivery.values()].flatMap((posts) => [...attemptNumbers(posts), ...overlaps(posts)]),
    ...repeats(evidence, byDelivery),
    ...order(evidence, byDelivery),
    ...early(evidence, byDelivery),
  ]
}

/** (5) One id per event and subscription, and one event per id. */
function identities({ posts }: Evidence): string[] {
  const lines: string[] = []
  const idOf = new Map<string, string>()
  const eventOf = new Map<string, string>()
  for (const post of posts) {
    const event = eventName(post)
    const id = idOf.get(event) ?? post.deliveryId
    const known = eventOf.get(post.deliveryId) ?? event
    if (id !== post.deliveryId) lines.push(`identity: ${event} was sent as ${id} and as ${post.deliveryId}`)
    if (known !== event) lines.push(`identity: ${post.deliveryId} was ${known} and ${event}`)
    idOf.set(event, id)
    eventOf.set(post.deliveryId, known)
  }
  return lines
}

/** (5) Attempts begin at 1 and rise by one. */
function attemptNumbers(posts: readonly PostEntry[]): string[] {
  const lines: string[] = []
  let highest = 0
  for (const post of posts) {
    if (post.attempt > highest + 1) lines.push(`attempts: ${postName(post)} comes after attempt ${highest}`)
    highest = Math.max(highest, post.attempt)
  }
  return lines
}

/** (7) In one process a delivery has at most one open POST. */
function overlaps(posts: readonly PostEntry[]): string[] {
  const lines: string[] = []
  posts.forEach((post, i) => {
    for (const later of posts.slice(i + 1)) {
      if (sameLife(post, later) && later.startMs < (post.endMs ?? Number.POSITIVE_INFINITY)) {
        lines.push(`overlap: ${postName(later)} started while ${postName(post)} was open`)
      }
    }
  })
  return lines
}

/** (2) A second POST of the same attempt needs a reason, and there is none once its settlement is in the log. */
function repeats(
  { faults, places, settled }: Evidence,
  byDelivery: ReadonlyMap<string, readonly PostEntry[]>,
): string[] {
  const lines: string[] = []
  const settledMs = new Map<string, number>()
  const known = (id: string, attempt: number, ms: number) => {
    const key = `${id} ${attempt}`
    settledMs.set(key, Math.min(ms, settledMs.get(key) ?? Number.POSITIVE_INFINITY))
  }
  for (const { attempt, decidedMs } of settled) {
    if (attempt.settlement !== 'released') known(attempt.deliveryId, attempt.attempt, decidedMs)
  }
  for (const { kind, delivery, decidedMs } of places) {
    if (kind === 'tier' || kind === 'dead') known(delivery.id, delivery.attempts, decidedMs)
  }
  for (const posts of byDelivery.values()) {
    const last = new Map<number, PostEntry>()
    for (const post of posts) {
      const before = last.get(post.attempt)
      last.set(post.attempt, post)
      const doneMs = settledMs.get(`${post.deliveryId} ${post.attempt}`) ?? Number.POSITIVE_INFINITY
      if (doneMs < post.startMs && !zombie(faults, post)) {
        lines.push(`repeat: ${postName(post)} although its settlement was committed at ${ms(doneMs)}`)
      } else if (
        before !== undefined &&
        before.outcome !== 'interrupted' &&
        !disturbed(faults, before.startMs, post.startMs)
      ) {
        lines.push(`repeat: ${postName(post)} repeats ${postName(before)}, and nothing happened in between`)
      }
    }
  }
  return lines
}

/** (3) In an ordered line a POST starts only when all before it are final; a step back needs a reason. */
function order(evidence: Evidence, byDelivery: ReadonlyMap<string, readonly PostEntry[]>): string[] {
  const lines: string[] = []
  const ordered = evidence.expected.filter((e) => e.ordered && (e.key !== null || e.line !== undefined))
  const ended = finals(evidence, byDelivery)
  const finalMs = finalForLines(evidence, ended)
  const lost = new Set(
    evidence.places
      .filter((p) => isLost(p, evidence.losses))
      .map(({ delivery }) => deliveryEvent(delivery))
      .filter((name) => !ended.has(name)),
  )
  const known = new Map(ordered.map((e) => [eventName(e), e]))
  const rankOf = (e: PostEntry | Expected) => known.get(eventName(e))?.rank ?? e.sequence
  const postsOf = group(evidence.posts, (p) => known.get(eventName(p))?.line ?? lineName(p))
  for (const [line, wanted] of group(ordered, (e) => e.line ?? lineName(e))) {
    const sorted = wanted
      .filter((e) => e.optional !== true && !lost.has(eventName(e)))
      .sort((a, b) => rankOf(a) - rankOf(b))
    let previous: PostEntry | undefined
    for (const post of postsOf.get(line) ?? []) {
      if (goesAlone(evidence, post)) continue
      const rank = rankOf(post)
      const open = sorted.find((e) => rankOf(e) < rank && !(finalAt(finalMs, e) <= post.startMs))
      if (open !== undefined) {
        const state = finalMs.has(eventName(open)) ? `final only at ${ms(finalAt(finalMs, open))}` : 'not final at all'
        lines.push(`order: ${postName(post)} started while ${eventName(open)} was ${state}`)
      }
      if (previous !== undefined) {
        const back = rank < rankOf(previous)
        if (back && !disturbed(evidence.faults, previous.startMs, post.startMs)) {
          lines.push(`order: ${postName(post)} went back behind ${postName(previous)}, and nothing happened in between`)
        }
        const stillOpen = sameLife(previous, post) && post.startMs < (previous.endMs ?? Number.POSITIVE_INFINITY)
        if (stillOpen && previous.deliveryId !== post.deliveryId) {
          lines.push(`order: ${postName(post)} started while ${postName(previous)} of its line was open`)
        }
      }
      previous = post
    }
  }
  return lines
}

/** Sent again, or left behind by its line by order: it has no place in the line any more. */
function goesAlone({ operated }: Evidence, { again, deliveryId, startMs }: PostEntry): boolean {
  return again !== undefined || (operated?.released.get(deliveryId) ?? Number.POSITIVE_INFINITY) <= startMs
}

/** When the lane can first have known each event final: delivered, dead or cancelled. */
export function finals(
  { places, settled, maxAttempts = Number.POSITIVE_INFINITY }: Pick<Evidence, 'places' | 'settled' | 'maxAttempts'>,
  byDelivery: ReadonlyMap<string, readonly PostEntry[]>,
): Map<string, number> {
  const finalMs = new Map<string, number>()
  const final = (event: string, atMs: number) => {
    finalMs.set(event, Math.min(atMs, finalMs.get(event) ?? Number.POSITIVE_INFINITY))
  }
  for (const posts of byDelivery.values()) {
    for (const post of posts) if (endsIt(post, maxAttempts)) final(eventName(post), post.endMs as number)
  }
  for (const { kind, delivery, appendedMs } of places) {
    if (kind !== 'dead') continue
    const posts = byDelivery.get(delivery.id) ?? []
    const last = posts.find((p) => p.attempt === delivery.attempts && p.endMs !== null && p.endMs <= appendedMs)
    final(deliveryEvent(delivery), last?.endMs ?? appendedMs - knownBeforeMs)
  }
  const events = new Map(places.map(({ delivery }) => [delivery.id, deliveryEvent(delivery)]))
  for (const { attempt, appendedMs } of settled) {
    const event = events.get(attempt.deliveryId)
    if (event !== undefined && attempt.settlement === 'cancelled') final(event, appendedMs - knownBeforeMs)
  }
  return finalMs
}

/** An outcome after which there is no other attempt; its lane knows that before the log does. */
function endsIt({ outcome, attempt }: PostEntry, maxAttempts: number): boolean {
  if (outcome === 'open' || outcome === 'interrupted') return false
  if (attempt >= maxAttempts || outcome.startsWith('status 2')) return true
  return /^status [34]/.test(outcome) && !['status 408', 'status 425', 'status 429'].includes(outcome)
}

/** (6) No attempt before its due time, by the process's own clock; nothing leaves a tier before it is ripe by the broker's. */
function early(
  { places, brokerClockMs, faults }: Evidence,
  byDelivery: ReadonlyMap<string, readonly PostEntry[]>,
): string[] {
  const lines: string[] = []
  const tiers = group(
    places.filter((place) => place.kind === 'tier'),
    (place) => `${place.delivery.id} ${place.delivery.attempts}`,
  )
  const parked = group(
    places.filter((place) => place.kind === 'parked'),
    (place) => `${place.delivery.id} ${place.delivery.attempts}`,
  )
  const jumps = faults.some((f) => f.kind === 'jump')
  for (const posts of byDelivery.values()) {
    for (const post of posts) {
      const before = posts.findLast((p) => p.attempt === post.attempt - 1 && (p.endMs ?? post.startMs) < post.startMs)
      const askedMs = (before?.endMs ?? 0) + (before?.retryAfterMs ?? 0)
      // Our clock has whole milliseconds.
      if (!jumps && post.startMs + 1 < askedMs) {
        lines.push(`early: ${postName(post)} although the endpoint asked to wait until ${ms(askedMs)}`)
      }
      const waits = (tiers.get(`${post.deliveryId} ${post.attempt - 1}`) ?? []).filter(
        (p) => p.appendedMs < post.startMs,
      )
      waits.sort((a, b) => b.appendedMs - a.appendedMs)
      // Who was put out of the group without a word may still start, for as long as its lease lasts, what it had before.
      const last = zombie(faults, post) ? waits.at(-1) : waits[0]
      if (last === undefined) continue
      const { dueMs } = last.delivery
      const stepped = faults.some((f) => f.kind === 'jump' && f.process === post.process && f.atMs <= post.startMs)
      // Parked when it was due: that was judged by the clock of who parked it, and that clock stamps what it appends there.
      const wasDue = (parked.get(`${post.deliveryId} ${post.attempt - 1}`) ?? []).some(
        (p) => p.appendedMs >= last.appendedMs && p.appendedMs < post.startMs && p.timestampMs >= (dueMs ?? 0),
      )
      if (dueMs !== null && !stepped && !wasDue && post.startLocalMs < dueMs) {
        lines.push(`early: ${postName(post)} by ${dueMs - post.startLocalMs} ms`)
      }
      const ripeMs = last.timestampMs + last.delayMs
      // A process whose clock was stepped can't know the broker's exactly.
      if (!stepped && post.startWallMs + brokerClockMs < ripeMs) {
        lines.push(
          `early: ${postName(post)} left ${last.topic} ${ripeMs - post.startWallMs - brokerClockMs} ms before it was ripe`,
        )
      }
    }
  }
  return lines
}

function disturbed(faults: readonly FaultEntry[], fromMs: number, toMs: number): boolean {
  return faults.some((f) => disturbing.has(f.kind) && f.untilMs + zombieMs >= fromMs && f.atMs <= toMs)
}

export function zombie(faults: readonly FaultEntry[], post: PostEntry): boolean {
  return faults.some(
    (f) =>
      (f.kind === 'stall' || f.kind === 'expire' || f.kind === 'fenced') &&
      f.process === post.process &&
      f.atMs <= post.startMs &&
      post.startMs <= f.untilMs + zombieMs,
  )
}

function finalAt(finalMs: ReadonlyMap<string, number>, event: Expected): number {
  return finalMs.get(eventName(event)) ?? Number.POSITIVE_INFINITY
}

function sameLife(a: PostEntry, b: PostEntry): boolean {
  return a.process === b.process && a.incarnation === b.incarnation
}

function lineName(e: { subscription: string; key: string | null }): string {
  return `${e.subscription}/${e.key ?? '-'}`
}

function postName(post: PostEntry): string {
  return `${eventName(post)} attempt ${post.attempt} at ${ms(post.startMs)} by ${post.process}.${post.incarnation} (${post.outcome})`
}

function ms(atMs: number): string {
  return `${atMs.toFixed(1)} ms`
}
