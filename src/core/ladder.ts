/** One retry topic with one fixed delay. */
export interface Tier {
  readonly name: string
  readonly delayMs: number
}

/**
 * The delay tiers, shortest first. A delay goes to the longest tier that fits into it; when that is ripe, what remains
 * goes to the next one that fits; what fits into none waits in memory. So every delay from `floorMs` up is exact.
 *
 * `slackMs` is the longest a decided move may wait for its transaction: a tier fits only if the delay is at least that
 * much longer, else the record would ripen late by the time it waited.
 */
export class Ladder {
  readonly tiers: readonly Tier[]
  readonly slackMs: number

  constructor(tiers: readonly Tier[], slackMs: number) {
    if (tiers.length === 0) throw new RangeError('a ladder needs at least one tier')
    this.tiers = [...tiers].sort((a, b) => a.delayMs - b.delayMs)
    this.slackMs = slackMs
  }

  /** Shortest delay a fresh failure gets: the state of a retry is durable only in a tier. */
  get floorMs(): number {
    return (this.tiers[0] as Tier).delayMs + this.slackMs
  }

  /** Index of the longest tier that fits into `delayMs`; null when it is below the floor. */
  pick(delayMs: number): number | null {
    for (let i = this.tiers.length - 1; i >= 0; i--) {
      if ((this.tiers[i] as Tier).delayMs + this.slackMs <= delayMs) return i
    }
    return null
  }

  /** Tier topics a delay passes through, in order, for people and for tests. */
  route(delayMs: number): string[] {
    const names: string[] = []
    let left = delayMs
    for (let i = this.pick(left); i !== null; i = this.pick(left)) {
      const tier = this.tiers[i] as Tier
      names.push(tier.name)
      left -= tier.delayMs + this.slackMs
    }
    return names
  }
}
