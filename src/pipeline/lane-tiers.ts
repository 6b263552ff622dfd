import { RateLimit } from '../core/rate-limit.ts'
import type { LaneWorld } from './lane-world.ts'
import { dueOf, TierQueue } from './tier-queue.ts'
import type { Work } from './work.ts'

export interface TiersHost {
  /** Due: to be attempted. */
  ripe(work: Work): void
  /** Not due for longer than another tier's delay: on to that tier (index). */
  hop(work: Work, tier: number): void
}

/** What a lane holds of its tiers until it is due, and the operators' brakes on them. */
export class LaneTiers {
  readonly #world: LaneWorld
  readonly #host: TiersHost
  readonly #queues: readonly TierQueue[]
  readonly #limits: RateLimit[] = []
  readonly promoted = new Map<string, number>()

  constructor(world: LaneWorld, host: TiersHost) {
    this.#world = world
    this.#host = host
    this.#queues = world.ladder.tiers.map((tier) => new TierQueue(tier.delayMs))
  }

  push(tier: number, work: Work, appendMs: number): void {
    this.#queues[tier]?.push(work, appendMs)
  }

  /** Promotes what is due. Returns when to be called again (epoch ms), null when nothing is held. */
  tick(): number | null {
    const { clock, clockOffset } = this.#world
    const now = clock.now()
    const broker = clockOffset.brokerAtLeastMs(now)
    let next: number | null = null
    for (const [index, queue] of this.#queues.entries()) {
      let atMs: number | null = null
      while (atMs === null && queue.ready(broker, now)) {
        if (this.#waits(queue, broker, now)) continue
        atMs = this.#gated(index, now)
        if (atMs !== null) break
        const due = queue.takeDue(now)
        if (due !== null) this.#promote(index, due)
        else this.#ripen(index, queue.takeRipe(broker) as Work, now)
      }
      atMs ??= queue.nextMs(broker - now)
      if (atMs !== null && (next === null || atMs < next)) next = atMs
    }
    return next
  }

  held(index: number): { held: number; lowestDueMs: number | null } {
    const queue = this.#queues[index]
    return { held: queue?.size ?? 0, lowestDueMs: queue?.lowestDueMs() ?? null }
  }

  /** The head is ripe, but goes on waiting here: that is no promotion, so no brake counts it. */
  #waits(queue: TierQueue, broker: number, now: number): boolean {
    const head = queue.peekRipe(broker)
    if (head === null) return false
    const leftMs = dueOf(head) - now
    if (leftMs <= 0 || this.#world.ladder.pick(leftMs) !== null) return false
    queue.takeRipe(broker)
    queue.wait(head)
    return true
  }

  #ripen(index: number, work: Work, now: number): void {
    const hop = this.#world.ladder.pick(dueOf(work) - now)
    if (hop === null) this.#promote(index, work)
    else {
      this.#count(index)
      this.#host.hop(work, hop)
    }
  }

  /** An operator has paused or throttled the tier: when to look again (epoch ms); null: one may go now. */
  #gated(index: number, now: number): number | null {
    const { orders, ladder, lanes } = this.#world
    const rate = orders.tierRate(ladder.tiers[index]?.name ?? '', now)
    if (rate === null) return null
    this.#limits[index] ??= new RateLimit(now)
    const limit = this.#limits[index]
    return limit.take(rate / lanes, now) ? null : now + limit.waitMs(rate / lanes)
  }

  #promote(index: number, work: Work): void {
    const tier = this.#count(index)
    this.#world.observer.time('tier_lateness', this.#world.clock.now() - dueOf(work), { tier })
    this.#host.ripe(work)
  }

  /** Whatever leaves a tier, to be attempted or to another tier. */
  #count(index: number): string {
    const tier = this.#world.ladder.tiers[index]?.name ?? ''
    this.promoted.set(tier, (this.promoted.get(tier) ?? 0) + 1)
    return tier
  }
}
