interface Origin {
  open: number
  /** Subscriptions that were turned away, longest waiting first. */
  readonly waiting: Set<string>
}

/** Open POSTs per origin, bounded, and who waits for a place there. An origin without either is forgotten. */
export class OriginSlots {
  readonly #most: number
  readonly #wake: (subscriptionId: string) => void
  readonly #origins = new Map<string, Origin>()

  constructor(most: number, wake: (subscriptionId: string) => void) {
    this.#most = most
    this.#wake = wake
  }

  /** False: the subscription is woken when there may be a place. */
  allows(name: string, subscriptionId: string): boolean {
    const origin = this.#origins.get(name)
    if (origin === undefined || origin.open < this.#most) return true
    origin.waiting.add(subscriptionId)
    return false
  }

  take(name: string): void {
    const origin = this.#origins.get(name)
    if (origin === undefined) this.#origins.set(name, { open: 1, waiting: new Set() })
    else origin.open++
  }

  /** Gives a place back; whoever has waited longest is woken. */
  leave(name: string): void {
    const origin = this.#origins.get(name)
    if (origin === undefined) return
    origin.open--
    if (!this.#wakeOne(name, origin) && origin.open === 0) this.#origins.delete(name)
  }

  /** Who was woken may have found nothing to start (its own cap): then the place is the next one's. False: nobody is left. */
  again(name: string): boolean {
    const origin = this.#origins.get(name)
    return origin !== undefined && origin.open < this.#most && this.#wakeOne(name, origin)
  }

  wakeAll(): void {
    for (const [name, origin] of this.#origins) {
      for (const subscriptionId of origin.waiting) this.#wake(subscriptionId)
      origin.waiting.clear()
      if (origin.open === 0) this.#origins.delete(name)
    }
  }

  #wakeOne(name: string, origin: Origin): boolean {
    const next = origin.waiting.values().next().value
    if (next === undefined) return false
    origin.waiting.delete(next)
    if (origin.open === 0 && origin.waiting.size === 0) this.#origins.delete(name)
    this.#wake(next)
    return true
  }
}
