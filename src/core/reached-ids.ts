import type { InRecord } from './record.ts'

/**
 * The deliveries of one subscription that need not be sent again, out of `attempts` in log order: those that were delivered,
 * and those whose next attempt is on its way. What died or was cancelled since is missing.
 */
export class ReachedIds {
  readonly #subscriptionId: string
  readonly #delivered = new Set<string>()
  readonly #waiting = new Set<string>()

  constructor(subscriptionId: string) {
    this.#subscriptionId = subscriptionId
  }

  get size(): number {
    return this.#delivered.size + this.#waiting.size
  }

  /** A record of `attempts`; others' and what can't be read is passed over. */
  add({ key, value }: Pick<InRecord, 'key' | 'value'>): void {
    if (value === null || (key !== null && key.toString() !== this.#subscriptionId)) return
    const { deliveryId, subscriptionId, settlement } = fieldsOf(value)
    if (typeof deliveryId !== 'string' || subscriptionId !== this.#subscriptionId || settlement === 'released') return
    if (settlement === 'scheduled') this.#waiting.add(deliveryId)
    else this.#waiting.delete(deliveryId)
    if (settlement === 'done') this.#delivered.add(deliveryId)
  }

  has(deliveryId: string): boolean {
    return this.#delivered.has(deliveryId) || this.#waiting.has(deliveryId)
  }
}

/** More would be too much to remember: the range must be narrower, or everything sent. */
export const mostReached = 1_000_000

function fieldsOf(value: Buffer): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(value.toString())
    return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
