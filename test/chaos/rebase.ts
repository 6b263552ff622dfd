import type { Evidence } from '../sim/evidence.ts'

/** The same with times counted from `zeroMs`, to be read by people; wall clock times of posts and due times stay. */
export function rebase(evidence: Evidence, zeroMs: number): Evidence {
  const shift = <T extends object, K extends keyof T>(item: T, ...keys: K[]): T => {
    const moved = { ...item }
    for (const key of keys) {
      const value = moved[key]
      if (typeof value === 'number') moved[key] = (value - zeroMs) as T[K]
    }
    return moved
  }
  return {
    ...evidence,
    posts: evidence.posts.map((post) => shift(post, 'startMs', 'endMs', 'acceptedMs')),
    faults: evidence.faults.map((fault) => shift(fault, 'atMs', 'untilMs')),
    places: evidence.places.map((place) => shift(place, 'appendedMs', 'decidedMs')),
    settled: evidence.settled.map((item) => shift(item, 'appendedMs', 'decidedMs')),
    positions: evidence.positions.map((position) => shift(position, 'atMs')),
  }
}
