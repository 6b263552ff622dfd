import type { TopicPartition } from './record.ts'

/** What the leader of a group knows of one member: who it is and what it owned as of which generation (−1: nothing yet). */
export interface AssignMember {
  readonly id: string
  readonly owned: readonly TopicPartition[]
  readonly generation: number
}

/**
 * Lanes: partition p of all topics goes to one member. Complete, disjoint, balanced within one lane; a member keeps all
 * it owns that balance allows. A topic with fewer partitions than the widest is served as far as it goes.
 */
export function assignLanes(
  counts: ReadonlyMap<string, number>,
  members: readonly AssignMember[],
): ReadonlyMap<string, readonly TopicPartition[]> {
  const lanes = [...Array(Math.max(0, ...counts.values())).keys()]
  const shares = share(
    lanes,
    members.map((m) => ({ ...m, owned: m.owned.filter((o) => counts.has(o.topic)).map((o) => o.partition) })),
  )
  const topics = [...counts].sort(([a], [b]) => compare(a, b))
  return mapValues(shares, (mine) =>
    topics.flatMap(([topic, count]) => mine.filter((p) => p < count).map((partition) => ({ topic, partition }))),
  )
}

/** Single topic-partitions, with the same guarantees; balance is over all topics together. */
export function assignPartitions(
  counts: ReadonlyMap<string, number>,
  members: readonly AssignMember[],
): ReadonlyMap<string, readonly TopicPartition[]> {
  const all = [...counts]
    .sort(([a], [b]) => compare(a, b))
    .flatMap(([topic, count]) => [...Array(count).keys()].map((partition) => ({ topic, partition })))
  const index = new Map(all.map((tp, i) => [keyOf(tp), i]))
  const shares = share(
    [...all.keys()],
    members.map((m) => ({ ...m, owned: m.owned.flatMap((o) => index.get(keyOf(o)) ?? []) })),
  )
  return mapValues(shares, (mine) => mine.map((i) => all[i] as TopicPartition))
}

interface Claimant {
  readonly id: string
  readonly owned: readonly number[]
  readonly generation: number
}

/**
 * Deals `units` to members: each gets ⌊n/m⌋ or one more, and the sum of what stays where it is is the largest possible
 * under that. Depends on the set of members only, not on their order.
 */
function share(units: readonly number[], claimants: readonly Claimant[]): Map<string, number[]> {
  const members = [...claimants].sort((a, b) => compare(a.id, b.id))
  const shares = new Map<string, number[]>(members.map((m) => [m.id, []]))
  if (members.length === 0) return shares

  const owned = claims(new Set(units), members)
  const floor = Math.floor(units.length / members.length)
  // Only so many members may hold one more than the floor; whoever owns that much already goes first, so nothing moves for it.
  let roomy = units.length % members.length
  const taken = new Set<number>()
  for (const { id } of members) {
    const mine = owned.get(id) ?? []
    const cap = mine.length > floor && roomy > 0 ? floor + 1 : floor
    if (cap > floor) roomy--
    for (const unit of mine.slice(0, cap)) {
      shares.get(id)?.push(unit)
      taken.add(unit)
    }
  }
  for (const unit of units) {
    if (taken.has(unit)) continue
    let least: number[] | undefined
    for (const mine of shares.values()) if (least === undefined || mine.length < least.length) least = mine
    least?.push(unit)
  }
  for (const mine of shares.values()) mine.sort((a, b) => a - b)
  return shares
}

/** Who may claim which unit: of two that both say they own it, the one with the later generation is right. */
function claims(units: ReadonlySet<number>, members: readonly Claimant[]): Map<string, number[]> {
  const owner = new Map<number, Claimant>()
  for (const member of members) {
    for (const unit of new Set(member.owned)) {
      const other = owner.get(unit)
      if (units.has(unit) && (other === undefined || member.generation > other.generation)) owner.set(unit, member)
    }
  }
  const owned = new Map<string, number[]>()
  for (const [unit, { id }] of [...owner].sort(([a], [b]) => a - b)) {
    const mine = owned.get(id)
    if (mine === undefined) owned.set(id, [unit])
    else mine.push(unit)
  }
  return owned
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`
}

/** By code unit: the same on every machine, whatever its locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function mapValues<A, B>(map: ReadonlyMap<string, A>, f: (value: A) => B): Map<string, B> {
  return new Map([...map].map(([key, value]) => [key, f(value)]))
}
