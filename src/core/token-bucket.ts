/**
 * A bound on events a second with a bounded burst: in any time t at most `perSecond` × t + `burst` are let through. Starts
 * with one token, not a full bucket: a process that restarts again and again must not get a burst each time.
 */
export class TokenBucket {
  readonly #perMs: number
  readonly #burst: number
  #tokens = 1
  #atMs: number

  /** `burst`: at least 1; by default a tenth of a second's worth. */
  constructor(perSecond: number, burst: number | undefined, nowMs: number) {
    this.#perMs = perSecond / 1000
    this.#burst = Math.max(1, burst ?? perSecond / 10)
    this.#atMs = nowMs
  }

  /** Ms until the next token is there; 0: one is. */
  waitMs(nowMs: number): number {
    this.#fill(nowMs)
    return this.#tokens >= 1 ? 0 : (1 - this.#tokens) / this.#perMs
  }

  /** Call when `waitMs` is 0. */
  take(): void {
    this.#tokens -= 1
  }

  /** As good as a new one. */
  full(nowMs: number): boolean {
    this.#fill(nowMs)
    return this.#tokens >= this.#burst
  }

  #fill(nowMs: number): void {
    const passedMs = Math.max(0, nowMs - this.#atMs)
    this.#atMs = Math.max(this.#atMs, nowMs)
    // The last fraction may be lost in rounding: a wait that is over must find its token.
    this.#tokens = Math.min(this.#burst, this.#tokens + passedMs * this.#perMs + 1e-9)
  }
}
