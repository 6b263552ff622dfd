import type { Event } from './event.ts'
import { EventFacts } from './event-facts.ts'
import { evaluate } from './filter.ts'
import { patternMatches } from './match-index.ts'
import type { Subscription } from './subscription.ts'
import { filterOf } from './subscription-content.ts'

/**
 * Would this one subscription get this event? The rule of the router, for whoever asks about one. Undecided counts as
 * wanted, as there: one event too many can be thrown away by its receiver. `reserved`: see MatchIndex.
 */
export function wantsEvent(subscription: Subscription, event: Event, reserved: string | null): boolean {
  if (subscription.tenant !== event.tenant) return false
  const own = reserved !== null && event.type.startsWith(reserved)
  const typed = subscription.types.some((pattern) => !(own && pattern === '*') && patternMatches(pattern, event.type))
  if (!typed) return false
  const filter = filterOf(subscription)
  if (filter === null) return true
  // A claimed body is not fetched to be looked into.
  if (event.claim !== undefined && filter.needsBody) return true
  return evaluate(filter, new EventFacts({ ...event, key: event.orderingKey }, event.body)) !== false
}
