/**
 * How far the broker's clock is ahead of ours, from append times in produce responses: the append happened between
 * sending and receiving, so each sample bounds the offset from both sides. The narrowest recent bound wins; old ones
 * widen by drift (200 ppm) so that a step of either clock is believed after a while.
 */
export class ClockOffset {
  #low = Number.NEGATIVE_INFINITY
  #high = Number.POSITIVE_INFINITY
  #atMs = 0

  /** All epoch ms; `appendMs` is whole milliseconds, so the append may be almost 1 ms later. */
  sample(sentMs: number, receivedMs: number, appendMs: number): void {
    const low = appendMs - receivedMs
    const high = appendMs + 1 - sentMs
    const drift = Math.max(0, receivedMs - this.#atMs) * 2e-4
    const oldLow = this.#low - drift
    const oldHigh = this.#high + drift
    const disjoint = low > oldHigh || high < oldLow
    this.#low = disjoint ? low : Math.max(low, oldLow)
    this.#high = disjoint ? high : Math.min(high, oldHigh)
    this.#atMs = receivedMs
  }

  /** Middle of the bound, ms; null before the first sample. */
  get estimateMs(): number | null {
    return Number.isFinite(this.#low) ? (this.#low + this.#high) / 2 : null
  }

  /** Earliest the broker's clock can show when ours shows `nowMs`. Without a sample both are taken to agree. */
  brokerAtLeastMs(nowMs: number): number {
    return Number.isFinite(this.#low) ? nowMs + this.#low : nowMs
  }
}
