/**
 * Dead letters are paid for by successes: an endpoint that answers now and then may exhaust deliveries at that pace,
 * one that is wholly down may not, or a single outage would flood `dead` with what only had to wait (uForwarder's rule).
 */
export class DeadCredit {
  readonly #most: number
  readonly #left = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Takes one credit; false: there is none, the delivery should wait on. */
  spend(subscriptionId: string): boolean {
    const left = this.#left.get(subscriptionId) ?? this.#most
    if (left < 1) return false
    this.#left.set(subscriptionId, left - 1)
    return true
  }

  earn(subscriptionId: string): void {
    const left = this.#left.get(subscriptionId)
    if (left === undefined) return
    if (left + 1 >= this.#most) this.#left.delete(subscriptionId)
    else this.#left.set(subscriptionId, left + 1)
  }

  get size(): number {
    return this.#left.size
  }
}
