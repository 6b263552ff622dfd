/** When an endpoint counts as down, and how it is tried again. */
export interface CircuitPolicy {
  /** Opens after so many failures in a row; 0: never. */
  readonly failures: number
  /** Opens when this share of at least `minSamples` attempts of the last `windowMs` failed, 0..1. */
  readonly failureRate: number
  readonly minSamples: number
  readonly windowMs: number
  /** First time open; doubled with each failed probe up to `maxOpenMs`. */
  readonly openMs: number
  readonly maxOpenMs: number
}

export type CircuitState =
  | { readonly t: 'closed' }
  /** Nothing is attempted until `untilMs` (epoch). `openings`: how often in a row, this one included. */
  | { readonly t: 'open'; readonly untilMs: number; readonly openings: number }
  /** One probe at a time. */
  | { readonly t: 'half-open'; readonly probing: boolean; readonly openings: number }

/**
 * The circuit breaker of one endpoint (Nygard, Release It!): while it is open no attempts are spent, then one probe
 * decides. Pure but for its own state: time and chance are arguments.
 */
export class Circuit {
  readonly #policy: CircuitPolicy
  #state: CircuitState = { t: 'closed' }
  #inARow = 0
  #window = { startMs: 0, ok: 0, failed: 0 }
  #before = { ok: 0, failed: 0 }

  constructor(policy: CircuitPolicy) {
    this.#policy = policy
  }

  get state(): CircuitState {
    return this.#state
  }

  /** Nothing to remember: it may be forgotten. */
  get idle(): boolean {
    return this.#state.t === 'closed' && this.#inARow === 0
  }

  /** May an attempt start? Asking changes nothing but an open circuit whose time is over. */
  allows(nowMs: number): boolean {
    if (this.#state.t === 'open' && nowMs >= this.#state.untilMs) {
      this.#state = { t: 'half-open', probing: false, openings: this.#state.openings }
    }
    return this.#state.t === 'closed' || (this.#state.t === 'half-open' && !this.#state.probing)
  }

  /** An attempt starts; it is the probe of a half-open circuit. */
  started(): void {
    if (this.#state.t === 'half-open') this.#state = { ...this.#state, probing: true }
  }

  /** An attempt ended without saying anything about the endpoint (interrupted, blocked). */
  undecided(): void {
    if (this.#state.t === 'half-open') this.#state = { ...this.#state, probing: false }
  }

  /** `random` in [0, 1) spreads the probes of many circuits. True when the state changed. */
  ended(ok: boolean, nowMs: number, random: number): boolean {
    if (ok) {
      this.#count(true, nowMs)
      this.#inARow = 0
      if (this.#state.t === 'closed') return false
      // Also a late success of an attempt from before: the endpoint answers.
      this.#state = { t: 'closed' }
      this.#window = { startMs: nowMs, ok: 0, failed: 0 }
      this.#before = { ok: 0, failed: 0 }
      return true
    }
    this.#count(false, nowMs)
    this.#inARow++
    switch (this.#state.t) {
      case 'open':
        return false
      case 'half-open':
        this.#open(this.#state.openings + 1, nowMs, random)
        return true
      case 'closed':
        if (!this.#tooBad()) return false
        this.#open(1, nowMs, random)
        return true
      default:
        return this.#state satisfies never
    }
  }

  /** As a predecessor left it; of several the one that says to wait longest. */
  restore(untilMs: number, openings: number): void {
    const { t } = this.#state
    if (t !== 'closed' && this.#state.openings > openings) return
    if (t === 'half-open' && this.#state.openings === openings) return
    if (t === 'open' && this.#state.openings === openings && this.#state.untilMs >= untilMs) return
    this.#state = { t: 'open', untilMs, openings }
  }

  #open(openings: number, nowMs: number, random: number): void {
    const ms = Math.min(this.#policy.maxOpenMs, this.#policy.openMs * 2 ** Math.min(openings - 1, 20))
    this.#state = { t: 'open', untilMs: Math.ceil(nowMs + ms * (0.8 + 0.4 * random)), openings }
  }

  #tooBad(): boolean {
    const { failures, failureRate, minSamples } = this.#policy
    if (failures === 0) return false
    if (this.#inARow >= failures) return true
    const failed = this.#window.failed + this.#before.failed
    const all = failed + this.#window.ok + this.#before.ok
    return all >= minSamples && failed / all >= failureRate
  }

  /** Two half windows: the one that runs and the one before. */
  #count(ok: boolean, nowMs: number): void {
    const half = this.#policy.windowMs / 2
    if (nowMs - this.#window.startMs >= half) {
      const recent = nowMs - this.#window.startMs < 2 * half
      this.#before = recent ? { ok: this.#window.ok, failed: this.#window.failed } : { ok: 0, failed: 0 }
      this.#window = { startMs: nowMs, ok: 0, failed: 0 }
    }
    if (ok) this.#window.ok++
    else this.#window.failed++
  }
}
