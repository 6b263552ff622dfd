/** Uniform in [0, 1). */
export type Random = () => number

/**
 * A named stream of a seed. Every consumer of chance has its own stream, so that switching one fault off does not shift
 * the dice of all others: a failing seed stays comparable while faults are taken away one by one.
 */
export function randomStream(seed: number, name: string): Random {
  let h = 0x811c9dc5 ^ seed
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193)
  let state = (h ^ (h >>> 15)) >>> 0
  // mulberry32: 32 bits of state are plenty for a test run, and it is fast.
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** Whole number in [low, high]. */
export function between(random: Random, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1))
}

export function pick<T>(random: Random, items: readonly T[]): T {
  if (items.length === 0) throw new RangeError('pick from nothing')
  return items[Math.floor(random() * items.length)] as T
}
