import type { TopicPartition } from '../core/record.ts'

/** One assigned partition: where its next record is read, and whether it is read at all. */
export interface OwnedPartition extends TopicPartition {
  /** Unknown for a gained partition until the pipeline seeks. */
  position: number | null
  paused: boolean
}

/**
 * What is assigned now. Built anew at each join, so that no pause, no position and no fetch under way of an earlier
 * assignment can reach the next one, but for the positions of what was kept.
 */
export class GroupPartitions {
  #owned = new Map<string, OwnedPartition>()
  /** Between the start of a rebalance and the next assignment nothing is handed over, whatever is resumed. */
  #suspended = false

  get(at: TopicPartition): OwnedPartition | undefined {
    return this.#owned.get(keyOf(at))
  }

  all(): readonly OwnedPartition[] {
    return [...this.#owned.values()]
  }

  /** A fetch under way from elsewhere no longer counts: it asked for another object. */
  seek(at: TopicPartition, offset: number): void {
    const owned = this.get(at)
    if (owned !== undefined) this.#owned.set(keyOf(at), { ...owned, position: offset })
  }

  /** What may be fetched. */
  active(): readonly OwnedPartition[] {
    return this.#suspended ? [] : this.all().filter((p) => !p.paused && p.position !== null)
  }

  /** Whether data fetched for `asked` at `from` may still be handed over. */
  accepts(asked: OwnedPartition, from: number): boolean {
    return !this.#suspended && this.get(asked) === asked && !asked.paused && asked.position === from
  }

  suspend(): void {
    this.#suspended = true
  }

  /** Takes a new assignment: everything paused; `continuous` says that what we have again was never out of our hands. */
  replace(assigned: readonly TopicPartition[], continuous: boolean): Change {
    const before = this.#owned
    const kept: TopicPartition[] = []
    const gained: TopicPartition[] = []
    this.#owned = new Map()
    for (const { topic, partition } of assigned) {
      const key = keyOf({ topic, partition })
      const old = continuous ? before.get(key) : undefined
      this.#owned.set(key, { topic, partition, position: old?.position ?? null, paused: true })
      if (old === undefined) gained.push({ topic, partition })
      else kept.push({ topic, partition })
      if (old !== undefined) before.delete(key)
    }
    this.#suspended = false
    return { gained, kept, lost: [...before.values()].map(({ topic, partition }) => ({ topic, partition })) }
  }
}

export interface Change {
  readonly gained: readonly TopicPartition[]
  readonly kept: readonly TopicPartition[]
  /** Owned before and not kept; also in `gained` when it came back but may have been someone else's in between. */
  readonly lost: readonly TopicPartition[]
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`
}
