interface Share {
  /** Works in memory: queued, open, read ahead. */
  waiting: number
  /** Records of it in `parked`, as far as this lane has moved or counted them. */
  parked: number
  /** Ended since `sinceMs`, and what that was per second in the window before. */
  done: number
  perSecond: number
  sinceMs: number
}

export interface CrowdLimits {
  /** A subscription with fewer works in a lane's memory is never diverted. */
  readonly minShare: number
  /** Works of a diverted subscription that stay in memory, so that it goes on while the rest is parked. */
  readonly keep: number
  /** With more of `deliveries` than this ahead, a diverted subscription's records are passed by instead of parked. */
  readonly behind: number
}

/**
 * How much of a lane's memory each subscription holds, and how fast it works that off. When the lane is full, those that
 * hold more than they finish in a second are diverted to `parked`: a crowd that moves only waits a moment, one that
 * does not must not stand in front of the others.
 */
export class Crowd {
  readonly #limits: CrowdLimits
  readonly #shares = new Map<string, Share>()
  readonly #diverted = new Set<string>()

  constructor(limits: CrowdLimits) {
    this.#limits = limits
  }

  entered(subscriptionId: string, nowMs: number): void {
    const share = this.#shares.get(subscriptionId)
    if (share !== undefined) share.waiting++
    else
      this.#shares.set(subscriptionId, {
        waiting: 1,
        parked: 0,
        done: 0,
        perSecond: 0,
        sinceMs: nowMs,
      })
  }

  /** Out of memory: ended, moved, or parked. */
  left(subscriptionId: string, ended: boolean, nowMs: number): void {
    const share = this.#shares.get(subscriptionId)
    if (share === undefined) return
    share.waiting--
    if (ended) {
      share.done++
      if (nowMs - share.sinceMs >= windowMs) this.#roll(share, nowMs)
    }
    if (share.waiting <= 0 && share.parked <= 0) this.#forget(subscriptionId)
  }

  parked(subscriptionId: string, records: number): void {
    const share = this.#shares.get(subscriptionId)
    if (share === undefined) return
    share.parked = Math.max(0, share.parked + records)
    // Back to normal: nothing of it stands in `parked` any more.
    if (share.parked <= 0) this.#diverted.delete(subscriptionId)
    if (share.waiting <= 0 && share.parked <= 0) this.#forget(subscriptionId)
  }

  /** Must an arrival of it be parked? */
  diverts(subscriptionId: string): boolean {
    return this.#diverted.has(subscriptionId) && this.waiting(subscriptionId) > this.#limits.keep
  }

  /** Anybody at all? */
  get diverting(): boolean {
    return this.#diverted.size > 0
  }

  /**
   * Who is to be diverted now that the lane is full: everyone that holds more than it works off in a second and, where
   * others hold some too, more than twice its fair part. When all are slow alike, parking them all would help nobody.
   */
  divert(nowMs: number): string[] {
    const found: string[] = []
    const fair = this.#shares.size < 2 ? 0 : (2 * this.#total()) / this.#shares.size
    for (const [id, share] of this.#shares) {
      if (share.waiting <= Math.max(this.#limits.minShare, fair)) continue
      const elapsedMs = nowMs - share.sinceMs
      if (elapsedMs >= windowMs) this.#roll(share, nowMs)
      else if (elapsedMs < settledMs && share.perSecond === 0) continue
      const perSecond = Math.max(share.perSecond, (share.done * 1_000) / Math.max(1, elapsedMs))
      if (share.waiting <= perSecond) continue
      this.#diverted.add(id)
      found.push(id)
    }
    return found
  }

  waiting(subscriptionId: string): number {
    return this.#shares.get(subscriptionId)?.waiting ?? 0
  }

  #forget(subscriptionId: string): void {
    this.#shares.delete(subscriptionId)
    this.#diverted.delete(subscriptionId)
  }

  #total(): number {
    let total = 0
    for (const { waiting } of this.#shares.values()) total += waiting
    return total
  }

  #roll(share: Share, nowMs: number): void {
    share.perSecond = (share.done * 1_000) / Math.max(1, nowMs - share.sinceMs)
    share.done = 0
    share.sinceMs = nowMs
  }
}

const windowMs = 500
/** Before this nothing can be said of a subscription's pace. */
const settledMs = 200
