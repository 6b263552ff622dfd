/** A POST that took so long, or is open for so long, is slow. */
const slowMs = 1000
/** Of all slots, for those that are not known to be quick; the rest is kept for those that are. */
const share = 0.5
/** With everybody's first POST, which is always worth a try. */
const shareWithFirsts = 0.9
const forgetAbove = 50_000

interface State {
  /** Start of each open POST, oldest first. */
  readonly open: Map<object, number>
  quick: boolean
}

/**
 * Keeps slots for subscriptions whose endpoints answer quickly: fifty that drip would otherwise hold every slot for a whole
 * time-out before their circuits open, and all others would wait. Quick is who answered within a second the last time and has
 * no POST open for longer; whoever is not shares half of the slots, and may always have one.
 */
export class SlowShare {
  readonly #most: number
  readonly #mostWithFirsts: number
  readonly #states = new Map<string, State>()
  readonly #waiting = new Set<string>()
  #slowOpen = 0

  constructor(maxInFlight: number) {
    this.#most = Math.max(1, Math.floor(maxInFlight * share))
    this.#mostWithFirsts = Math.max(1, Math.floor(maxInFlight * shareWithFirsts))
  }

  /** May the subscription have one more open? False: it is handed out by `takeWaiting` when it is worth asking again. */
  allows(subscriptionId: string, nowMs: number): boolean {
    const state = this.#states.get(subscriptionId)
    if (state?.quick === true) {
      const oldestMs = state.open.values().next().value
      if (oldestMs === undefined || nowMs - oldestMs < slowMs) return true
      state.quick = false
      this.#slowOpen += state.open.size
    }
    if (this.#slowOpen < this.#most) return true
    if ((state?.open.size ?? 0) === 0 && this.#slowOpen < this.#mostWithFirsts) return true
    this.#waiting.add(subscriptionId)
    return false
  }

  started(subscriptionId: string, work: object, nowMs: number): void {
    let state = this.#states.get(subscriptionId)
    if (state === undefined) {
      if (this.#states.size >= forgetAbove)
        for (const [id, { open }] of this.#states) if (open.size === 0) this.#states.delete(id)
      state = { open: new Map(), quick: false }
      this.#states.set(subscriptionId, state)
    }
    state.open.set(work, nowMs)
    if (!state.quick) this.#slowOpen++
  }

  /** True: there is room again for some who wait, see `takeWaiting`. */
  ended(subscriptionId: string, work: object, nowMs: number): boolean {
    const state = this.#states.get(subscriptionId)
    const startMs = state?.open.get(work)
    if (state === undefined || startMs === undefined) return false
    const before = this.#slowOpen
    state.open.delete(work)
    if (!state.quick) this.#slowOpen--
    const quick = nowMs - startMs < slowMs
    if (quick !== state.quick) {
      state.quick = quick
      this.#slowOpen += quick ? -state.open.size : state.open.size
    }
    return this.#waiting.size > 0 && this.#slowOpen < before && this.#slowOpen < this.#mostWithFirsts
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Who has waited longest; null: nobody, or there is no room. Who can't start after all comes back by `allows`. */
  takeWaiting(): string | null {
    if (this.#slowOpen >= this.#mostWithFirsts) return null
    const [next] = this.#waiting
    if (next === undefined) return null
    this.#waiting.delete(next)
    return next
  }
}
