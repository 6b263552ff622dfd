import { finals } from './check-posts.ts'
import { type Evidence, isLost, type Place } from './evidence.ts'
import { deliveryEvent, eventName, group } from './names.ts'

/** (4) What holds at any time: positions never pass an undone record and never go back, and no move happens twice. */
export function checkLog(evidence: Evidence): string[] {
  return [...committedBelowUndone(evidence), ...movedTwice(evidence)]
}

/** (1), (8), (9): what holds when the faults are over and everything had time to come to its end. */
export function checkEnd(evidence: Evidence): string[] {
  return [...unfinished(evidence), ...lag(evidence), ...leftovers(evidence)]
}

/** A source record may be passed when its attempt is over and what follows from it is in the log. */
function committedBelowUndone({ positions, places, posts, settled, losses }: Evidence): string[] {
  const lines: string[] = []
  const repeated = repeatsIn(places)
  const sources = group(
    places.filter((p) => (p.kind === 'deliveries' && !repeated.has(p)) || p.kind === 'tier'),
    (p) => `${p.topic}/${p.partition}`,
  )
  const placesOf = group(places, (p) => p.delivery.id)
  const postsOf = group(posts, (p) => `${p.deliveryId} ${p.attempt}`)
  const settledOf = group(settled, (s) => `${s.attempt.deliveryId} ${s.attempt.attempt}`)
  const isDone = (record: Place, byMs: number): boolean => {
    if (isLost(record, losses)) return true
    const { id, attempts } = record.delivery
    const next = `${id} ${attempts + 1}`
    if ((settledOf.get(next) ?? []).some((s) => s.appendedMs <= byMs && s.attempt.settlement !== 'released'))
      return true
    const delivered = (p: { outcome: string; endMs: number | null }) =>
      p.outcome.startsWith('status 2') && (p.endMs ?? byMs + 1) <= byMs
    if ((postsOf.get(next) ?? []).some(delivered)) return true
    return (placesOf.get(id) ?? []).some((other) => {
      if (other === record || other.appendedMs > byMs) return false
      // A router's repeat is done as soon as the first of it was seen.
      if (other.kind === 'deliveries') return record.kind === 'deliveries' && other.offset < record.offset
      return (
        other.delivery.attempts > attempts ||
        (other.appendedMs >= record.appendedMs && other.delivery.attempts === attempts)
      )
    })
  }
  const passed = new Map<string, number>()
  /** Records come by offset: each is judged by the first commit that passes it. */
  const cursor = new Map<string, number>()
  for (const { topic, partition, offset, atMs } of positions) {
    const at = `${topic}/${partition}`
    const before = passed.get(at) ?? 0
    if (offset < before) lines.push(`commit: ${at} went back from ${before} to ${offset} at ${atMs.toFixed(1)} ms`)
    const records = sources.get(at) ?? []
    let next = cursor.get(at) ?? 0
    for (; next < records.length && (records[next] as Place).offset < offset; next++) {
      const record = records[next] as Place
      if (isDone(record, atMs)) continue
      lines.push(`commit: ${at} went to ${offset} at ${atMs.toFixed(1)} ms over undone ${placeName(record)}`)
    }
    cursor.set(at, next)
    passed.set(at, Math.max(before, offset))
  }
  return lines
}

/**
 * Each (delivery, attempt) is in a tier at most once, but for a long wait that takes it through the same tier again: then
 * the one before was ripe. And a death is final.
 */
function movedTwice({ places, faults }: Evidence): string[] {
  const moves = group(
    places.filter((p) => p.kind === 'dead' || p.kind === 'tier'),
    (p) => `${p.topic} ${p.delivery.id} ${p.delivery.attempts}`,
  )
  return [...moves.values()].flatMap((same) =>
    same.flatMap((move, i) => {
      const before = same[i - 1]
      if (before === undefined) return []
      // Nor can a process whose clock was stepped tell when that is.
      const stepped = faults.some((f) => f.kind === 'jump' && f.atMs <= move.appendedMs)
      if (move.kind === 'tier' && (stepped || move.appendedMs >= before.appendedMs + before.delayMs)) return []
      return [`move: ${placeName(before)} and ${placeName(move)} are the same`]
    }),
  )
}

/**
 * What a router wrote again: the lane drops it. Also an event that a subscription did not want the first time, and is too
 * late for now.
 */
function repeatsIn(places: readonly Place[]): ReadonlySet<Place> {
  const repeats = new Set<Place>()
  const last = new Map<string, Place>()
  for (const place of places) {
    if (place.kind !== 'deliveries') continue
    const stream = `${place.partition} ${place.delivery.origin.stream}`
    const before = last.get(stream)
    if (before !== undefined && !isAfter(place, before)) repeats.add(place)
    else last.set(stream, place)
  }
  return repeats
}

function isAfter({ delivery: a }: Place, { delivery: b }: Place): boolean {
  if (a.origin.generation !== b.origin.generation) return a.origin.generation > b.origin.generation
  if (a.origin.offset !== b.origin.offset) return a.origin.offset > b.origin.offset
  return a.subscriptionId > b.subscriptionId
}

/** (1), (9) Every wanted event is delivered, dead or cancelled. */
function unfinished(evidence: Evidence): string[] {
  const { expected, posts, places, losses } = evidence
  const final = finals(
    { places, settled: evidence.settled },
    group(posts, (p) => p.deliveryId),
  )
  const repeated = repeatsIn(places)
  const placesOf = group(
    places.filter((p) => !repeated.has(p)),
    (p) => deliveryEvent(p.delivery),
  )
  return expected.flatMap((e) => {
    const name = eventName(e)
    const known = placesOf.get(name) ?? []
    // What became a delivery comes to an end, whatever became of its subscription.
    if (final.has(name) || (e.optional === true && known.length === 0)) return []
    if (known.some((p) => isLost(p, losses))) return []
    const last = known.sort((a, b) => b.appendedMs - a.appendedMs)[0]
    return [
      last === undefined
        ? `lost: ${name} never became a delivery`
        : `lost: ${name} is not final, last seen as ${placeName(last)}`,
    ]
  })
}

/** (9) Nothing is left in front of the committed positions. */
function lag({ positions, places }: Evidence): string[] {
  const committed = new Map<string, number>()
  for (const { topic, partition, offset } of positions) committed.set(`${topic}/${partition}`, offset)
  const waiting = places.filter(
    (p) =>
      (p.kind === 'deliveries' || p.kind === 'tier') && p.offset >= (committed.get(`${p.topic}/${p.partition}`) ?? 0),
  )
  return [...group(waiting, (p) => `${p.topic}/${p.partition}`)].map(
    ([at, left]) => `lag: ${left.length} records of ${at} are not committed, first ${placeName(left[0] as Place)}`,
  )
}

/** (8), (9) */
function leftovers({ gauges, lines }: Evidence): string[] {
  return [
    ...Object.entries(gauges).flatMap(([name, value]) => (value === 0 ? [] : [`gauge: ${name} is ${value}`])),
    ...lines.map((line) => `line: ${line} is still in lane-state`),
  ]
}

function placeName({ topic, partition, offset, delivery }: Place): string {
  return `${topic}/${partition}@${offset} (${deliveryEvent(delivery)} after ${delivery.attempts} attempts)`
}
