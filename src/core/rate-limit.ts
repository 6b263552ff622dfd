/** Token bucket; at most a tenth of a second's worth, at least one, is saved up. */
export class RateLimit {
  #tokens = 1
  #atMs: number

  constructor(nowMs: number) {
    this.#atMs = nowMs
  }

  take(perSecond: number, nowMs: number): boolean {
    if (perSecond <= 0) return false
    const elapsedMs = Math.max(0, nowMs - this.#atMs)
    this.#atMs = nowMs
    this.#tokens = Math.min(Math.max(1, perSecond / 10), this.#tokens + (elapsedMs * perSecond) / 1_000)
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }

  /** Ms until the next token. */
  waitMs(perSecond: number): number {
    return perSecond <= 0 ? 1_000 : Math.max(1, ((1 - this.#tokens) * 1_000) / perSecond)
  }
}
