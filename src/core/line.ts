import type { Delivery } from './delivery.ts'
import type { LineState } from './lane-state.ts'
import type { Subscription } from './subscription.ts'

/**
 * Which line a delivery stands in; null: none, it is unordered and waits for nobody. The key starts with the
 * subscription id and a space, which an id can't contain.
 */
export function lineKeyOf(subscription: Subscription, delivery: Delivery): string | null {
  switch (subscription.ordering) {
    case 'none':
      return null
    case 'subscription':
      return orderedBySubscription(subscription.id)
    case 'key':
      return delivery.orderingKey === null ? null : `${subscription.id} k ${delivery.orderingKey}`
    default:
      return subscription.ordering satisfies never
  }
}

export function orderedBySubscription(subscriptionId: string): string {
  return `${subscriptionId} s`
}

/** The line in which unordered deliveries of a subscription are parked: overflow, paused, disabled. */
export function overflowKeyOf(subscriptionId: string): string {
  return `${subscriptionId} o`
}

export function isOrderedLine(key: string): boolean {
  return key[key.indexOf(' ') + 1] !== 'o'
}

export function subscriptionOfLine(key: string): string {
  return key.slice(0, key.indexOf(' '))
}

/** Anything a line can queue: it only has to know where it stood. */
export interface Queued {
  readonly source: 'deliveries' | 'tier' | 'parked'
  readonly offset: number
}

/**
 * One line of a lane, in memory. `state` is what `lane-state` says (as of the next commit); null: simply open.
 * Order of starting: `head` (back from a tier), `front` (deliveries from before the line stood), parked ones through
 * `buffer`, then `held` (arrivals behind the last parked record).
 */
export class Line<W extends Queued> {
  readonly key: string
  readonly ordered: boolean
  readonly subscriptionId: string
  state: LineState | null = null
  head: W | null = null
  readonly front: W[] = []
  readonly held: W[] = []
  readonly buffer: W[] = []
  /** Offered to the executor or open. Ordered lines: at most one. */
  readonly open = new Set<W>()
  /** Parked offset from which this line's records are still to be read. */
  readNext = 0
  /** Blocked lines: the head was seen in a tier, or went there, since the lane was gained. */
  headKnown = false
  /** Unordered lines: parked offsets done above `state.next`. */
  readonly doneAbove = new Set<number>()

  constructor(key: string) {
    this.key = key
    this.ordered = isOrderedLine(key)
    this.subscriptionId = subscriptionOfLine(key)
  }

  /** Nothing of it is left in memory or in `lane-state`. */
  get idle(): boolean {
    return (
      this.state === null &&
      this.head === null &&
      this.front.length === 0 &&
      this.held.length === 0 &&
      this.buffer.length === 0 &&
      this.open.size === 0
    )
  }

  /** Works in memory that are not open. */
  get waiting(): number {
    return this.front.length + this.held.length + this.buffer.length + (this.head === null ? 0 : 1)
  }
}
