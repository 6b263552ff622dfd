import type { Control } from '../../src/core/control.ts'
import type { Evidence, Operated, Place } from './evidence.ts'
import { deliveryEvent, eventName, group } from './names.ts'
import type { PostEntry } from './receiver.ts'
import { firstRound, secondRound } from './rounds.ts'

/** What operators ordered and subscriptions asked for, against what was sent. */
export function checkOrders(evidence: Evidence): string[] {
  const { operated } = evidence
  if (operated === undefined) return []
  const stays = intervalsOf(operated)
  return [
    ...content(evidence, operated),
    ...whilePaused(evidence, stays),
    ...tierPauses(evidence, stays),
    ...afterCancel(evidence, operated, stays),
    ...unexplained(evidence, operated),
  ]
}

/** An order as one process knew it, from when to when. */
interface Stay {
  readonly key: string
  readonly order: string
  readonly fromMs: number
  untilMs: number
}

/** By process, its life and the order's target. */
function intervalsOf({ applied }: Operated): ReadonlyMap<string, Stay[]> {
  const stays = new Map<string, Stay[]>()
  for (const { key, order, process, incarnation, atMs } of applied) {
    const who = `${process}.${incarnation} ${key}`
    const own = stays.get(who) ?? []
    stays.set(who, own)
    const last = own.at(-1)
    if (last !== undefined) last.untilMs = Math.min(last.untilMs, atMs)
    own.push({ key, order, fromMs: atMs, untilMs: Number.POSITIVE_INFINITY })
  }
  return stays
}

function staying(stays: ReadonlyMap<string, Stay[]>, post: PostEntry, key: string, order: string): Stay | undefined {
  const own = stays.get(`${post.process}.${post.incarnation} ${key}`)
  return own?.find((stay) => stay.order === order && stay.fromMs < post.startMs && post.startMs < stay.untilMs)
}

/** (10) Only what a subscription wants is sent, and as it wants it. */
function content({ posts, places }: Evidence, { shapeOf }: Operated): string[] {
  const unwanted = new Set<string>()
  for (const { kind, delivery } of places) {
    if (kind !== 'deliveries') continue
    const { subscriptionId, orderingKey } = delivery
    const name = deliveryEvent(delivery)
    const sequence = Number(/#(\d+)/.exec(name)?.[1])
    if (shapeOf(subscriptionId, orderingKey, sequence) === null) unwanted.add(name)
  }
  return [
    ...[...unwanted].map((name) => `content: ${name} became a delivery although its subscription does not want it`),
    ...posts.flatMap((post) => {
      const wanted = shapeOf(post.subscription, post.key, post.sequence)
      const found = post.shape === undefined ? 'plain' : 'shaped'
      return wanted === null || wanted === found ? [] : [`content: ${eventName(post)} was sent ${found}, not ${wanted}`]
    }),
  ]
}

/** (11) A paused subscription is not attempted by whoever has read the order. */
function whilePaused({ posts }: Evidence, stays: ReadonlyMap<string, Stay[]>): string[] {
  return posts.flatMap((post) => {
    const stay = staying(stays, post, `subscription:${post.subscription}`, 'pause')
    return stay === undefined ? [] : [`paused: ${told(post)} although its subscription was paused at ${at(stay)}`]
  })
}

/** (11) What comes due in a paused tier stays there. */
function tierPauses({ posts, places, faults }: Evidence, stays: ReadonlyMap<string, Stay[]>): string[] {
  const waits = group(
    places.filter(({ kind }) => kind === 'tier' || kind === 'parked'),
    ({ delivery }) => `${delivery.id} ${delivery.attempts + 1}`,
  )
  return posts.flatMap((post) => {
    const before = (waits.get(`${post.deliveryId} ${post.attempt}`) ?? []).filter((p) => p.appendedMs < post.startMs)
    const last = before.sort((a, b) => b.appendedMs - a.appendedMs)[0]
    // Parked: it had left its tier before.
    if (last === undefined || last.kind !== 'tier') return []
    // Whose clock was stepped does not know when something comes due.
    if (faults.some((f) => f.kind === 'jump' && f.process === post.process && f.atMs <= post.startMs)) return []
    const stay = staying(stays, post, `tier:${last.topic}`, 'pause')
    if (stay === undefined || last.appendedMs + last.delayMs <= stay.fromMs) return []
    return [`paused: ${told(post)} left ${last.topic}, which was paused at ${at(stay)}, before it was ripe`]
  })
}

/** (12) What is cancelled is not attempted any more by whoever has read the order. */
function afterCancel({ posts, places }: Evidence, operated: Operated, stays: ReadonlyMap<string, Stay[]>): string[] {
  const orders = new Map(operated.given.filter(({ order }) => order.order === 'cancel').map((g) => [g.key, g.order]))
  if (orders.size === 0) return []
  const placeOf = new Map(places.map((place) => [firstRound(place.delivery.id), place]))
  return posts.flatMap((post) => {
    const id = firstRound(post.deliveryId)
    const place = placeOf.get(id)
    if (place === undefined) return []
    const keys = [`delivery:${id}`]
    // The order of a line holds for events from before it; the last one given is the one that is known exactly.
    if (!operated.reordered.has(post.subscription)) {
      for (const key of lineKeys(place)) {
        const order = orders.get(key)
        if (order !== undefined && place.delivery.eventTimeMs <= order.atMs && only(operated, key)) keys.push(key)
      }
    }
    for (const key of keys) {
      const stay = staying(stays, post, key, 'cancel')
      if (stay !== undefined) return [`cancelled: ${told(post)} although ${key} was cancelled at ${at(stay)}`]
    }
    return []
  })
}

/** (12) Nothing is cancelled, or dead by order, that nobody has ordered. */
function unexplained({ settled, places }: Evidence, operated: Operated): string[] {
  const placeOf = new Map(places.map((place) => [firstRound(place.delivery.id), place]))
  const ordered = (id: string, byMs: number, to: 'cancelled' | 'dead') => {
    const place = placeOf.get(firstRound(id))
    return operated.given.some(({ key, order, atMs }) => {
      if (atMs > byMs) return false
      if (key === `delivery:${firstRound(id)}`) return order.order === 'cancel' && toOf(order) === to
      if (place === undefined || !lineKeys(place).includes(key)) return false
      return order.order === 'cancel' && place.delivery.eventTimeMs <= order.atMs && toOf(order) === to
    })
  }
  return [
    ...settled.flatMap(({ attempt, appendedMs }) => {
      const { settlement, deliveryId, subscriptionId } = attempt
      if (settlement !== 'cancelled' || operated.cancelling.has(subscriptionId)) return []
      if (ordered(deliveryId, appendedMs, 'cancelled')) return []
      const place = placeOf.get(firstRound(deliveryId))
      const name = place === undefined ? deliveryId : deliveryEvent(place.delivery)
      return [`cancelled: ${name} was settled so (${attempt.error}), and nobody had ordered it`]
    }),
    ...places.flatMap((place) => {
      if (place.reason !== 'operator' || ordered(place.delivery.id, place.appendedMs, 'dead')) return []
      return [`cancelled: ${deliveryEvent(place.delivery)} is dead by order, and nobody had ordered it`]
    }),
  ]
}

/**
 * When the others of its line need not wait for an event any more: when it is final, or when an operator has said so. Of a
 * subscription whose lines stop behind a dead head that is the release, or the end of the head that was sent again.
 */
export function finalForLines(evidence: Evidence, finalMs: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const { operated, places, posts } = evidence
  if (operated === undefined) return finalMs
  const known = new Map(finalMs)
  const earlier = (event: string, atMs: number) =>
    known.set(event, Math.min(atMs, known.get(event) ?? Number.POSITIVE_INFINITY))
  const delivered = new Set(
    posts.filter(({ outcome }) => outcome.startsWith('status 2')).map(({ deliveryId }) => deliveryId),
  )
  // By the first of its places.
  const events = new Map(places.toReversed().map((place) => [place.delivery.id, place]))
  const dead = new Set(places.filter((p) => p.kind === 'dead' && p.reason !== 'operator').map((p) => p.delivery.id))
  for (const place of events.values()) {
    const { id, subscriptionId } = place.delivery
    if (!operated.blocking.has(subscriptionId) || delivered.has(id) || id !== firstRound(id)) continue
    const event = deliveryEvent(place.delivery)
    const again = events.get(secondRound(id))
    const secondMs = again === undefined ? undefined : finalMs.get(deliveryEvent(again.delivery))
    if (dead.has(id)) known.set(event, secondMs ?? Number.POSITIVE_INFINITY)
  }
  for (const place of events.values()) {
    const { id, eventTimeMs, subscriptionId, orderingKey } = place.delivery
    // Without a POST there is nothing to see of its end before it is in the log, and who knew of it may have died first.
    const sequence = Number(/#(\d+)/.exec(deliveryEvent(place.delivery))?.[1])
    const posted = operated.shapeOf(subscriptionId, orderingKey, sequence) !== 'none'
    if (!posted && !operated.blocking.has(subscriptionId)) earlier(deliveryEvent(place.delivery), place.appendedMs)
    const releasedMs = operated.released.get(id)
    if (releasedMs !== undefined) earlier(deliveryEvent(place.delivery), releasedMs)
    const keys = lineKeys(place)
    for (const { key, order, atMs } of operated.given) {
      if (order.order !== 'cancel') continue
      if (key === `delivery:${id}` || (keys.includes(key) && eventTimeMs <= order.atMs))
        earlier(deliveryEvent(place.delivery), atMs)
    }
  }
  return known
}

/** The lines it may stand in, as `control` names them. */
function lineKeys({ delivery: { subscriptionId, orderingKey } }: Place): string[] {
  const whole = `line:${subscriptionId} s`
  return orderingKey === null ? [whole] : [whole, `line:${subscriptionId} k ${orderingKey}`]
}

function only({ given }: Operated, key: string): boolean {
  return given.filter((g) => g.key === key).length === 1
}

function toOf(order: Control): 'cancelled' | 'dead' {
  return order.args?.to === 'dead' ? 'dead' : 'cancelled'
}

function told(post: PostEntry): string {
  const { attempt, startMs, process, incarnation } = post
  return `${eventName(post)} attempt ${attempt} at ${startMs.toFixed(1)} ms by ${process}.${incarnation}`
}

function at({ fromMs }: Stay): string {
  return `${fromMs.toFixed(1)} ms`
}
