import type { Clock } from '../ports.ts'
import type { Work } from './work.ts'

/**
 * Works that can't start whatever their subscription does (their body's store is away): out of the ring, so that the
 * others of the subscription go on, and asked again by one timer for all.
 */
export class HeldWorks {
  readonly #clock: Clock
  readonly #again: () => void
  #works: Work[] = []
  #timer: { readonly atMs: number; cancel(): void } | null = null

  constructor(clock: Clock, again: () => void) {
    this.#clock = clock
    this.#again = again
  }

  get size(): number {
    return this.#works.length
  }

  /** Per subscription: since when. */
  waiting(): { readonly subscriptionId: string; readonly readyAtMs: number }[] {
    const oldest = new Map<string, number>()
    for (const { delivery, readyAtMs } of this.#works) {
      const { subscriptionId } = delivery
      oldest.set(subscriptionId, Math.min(readyAtMs, oldest.get(subscriptionId) ?? readyAtMs))
    }
    return [...oldest].map(([subscriptionId, readyAtMs]) => ({ subscriptionId, readyAtMs }))
  }

  hold(work: Work, waitMs: number): void {
    this.#works.push(work)
    const atMs = this.#clock.mono() + waitMs
    if (this.#timer !== null && this.#timer.atMs <= atMs) return
    this.#timer?.cancel()
    const cancel = this.#clock.after(Math.ceil(waitMs), () => {
      this.#timer = null
      this.#again()
    })
    this.#timer = { atMs, cancel }
  }

  /** All, longest held first. */
  take(): readonly Work[] {
    this.#timer?.cancel()
    this.#timer = null
    return this.#works.splice(0)
  }

  remove(owner: Work['owner'], subscriptionId?: string): Work[] {
    const which = (work: Work) =>
      work.owner === owner && (subscriptionId === undefined || work.delivery.subscriptionId === subscriptionId)
    const removed = this.#works.filter(which)
    if (removed.length > 0) this.#works = this.#works.filter((work) => !which(work))
    return removed
  }
}
