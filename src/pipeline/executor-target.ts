import type { Subscription } from '../core/subscription.ts'
import type { Accesses } from '../ports.ts'
import type { Paced } from './paces.ts'

/** What the executor must know of a work's subscription; null: it is gone, let the lane decide at `begin`. */
export type Target =
  | (Paced & {
      readonly maxInFlight: number
      /** False while something it needs is being fetched: `wake` is called when that is over. Null: it needs nothing. */
      readonly ready: (() => boolean) | null
    })
  | null

/** Targets of subscriptions as they are now. Asked several times per delivery; a changed subscription is another object. */
export function createTargets(deps: {
  subscription(id: string): Subscription | undefined
  /** Where a subscription's endpoint is, for the cap per origin. */
  originOf(url: string): string
  readonly accesses: Accesses
  readonly lanes: number
  readonly maxPerSubscription: number
}): (subscriptionId: string) => Target {
  const targets = new WeakMap<Subscription, NonNullable<Target>>()
  return (id) => {
    const found = deps.subscription(id)
    if (found === undefined) return null
    let target = targets.get(found)
    if (target === undefined) {
      const needsToken = found.auth?.oauth2 !== undefined
      target = {
        origin: deps.originOf(found.url),
        maxInFlight: found.maxInFlight ?? deps.maxPerSubscription,
        rate: found.rateLimit ?? null,
        lanes: found.ordering === 'none' ? Math.min(found.spread ?? 1, deps.lanes) : 1,
        ready: needsToken ? () => deps.accesses.of(found).t !== 'pending' : null,
      }
      targets.set(found, target)
    }
    return target
  }
}
