import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { LaneStart, LaneWorld } from './lane-world.ts'
import type { Lines } from './lines.ts'

/**
 * Finds lines whose head retention has taken: once after each gain, when every tier has been read as far as it went then.
 * They would wait for ever for it, so they go on without.
 */
export class OrphanWatch {
  readonly #world: LaneWorld
  readonly #partition: number
  /** Ends of the sources at the gain, until all tiers have been read that far. */
  #ends: readonly number[] | null

  constructor(world: LaneWorld, start: Pick<LaneStart, 'partition' | 'ends'>) {
    this.#world = world
    this.#partition = start.partition
    this.#ends = start.ends
  }

  look(trackers: readonly OffsetTracker[], lines: Lines): void {
    const ends = this.#ends
    if (ends === null) return
    if (trackers.some((tracker, index) => index > 0 && tracker.next < (ends[index] as number))) return
    this.#ends = null
    for (const line of [...lines]) {
      if (line.state?.state !== 'blocked' || line.headKnown || !lines.release(line.key)) continue
      const remedy = 'raise the retention of the retry topics'
      this.#world.observer.log('error', 'line.head_lost', { line: line.key, lane: this.#partition, remedy })
      this.#world.observer.count('heads_lost')
    }
  }
}
