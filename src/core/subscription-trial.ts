import type { Event } from './event.ts'
import { EventFacts } from './event-facts.ts'
import { evaluate } from './filter.ts'
import { explainFilter } from './filter-explain.ts'
import { patternMatches } from './match-index.ts'
import type { Subscription } from './subscription.ts'
import { filterOf, transformationOf } from './subscription-content.ts'
import { fillTemplate } from './transform-run.ts'

/** What a subscription would make of an event. */
export interface Trial {
  readonly matches: boolean
  /** Why not, one line each; also what else keeps it from being sent. */
  readonly reasons: readonly string[]
  /** What would be POSTed; null: it does not match, or the transformation fails (`reasons`). */
  readonly body: Buffer | null
  readonly contentType: string
}

export function trySubscription(subscription: Subscription, event: Event): Trial {
  const { tenant, types, status, whileDisabled } = subscription
  const reasons: string[] = []
  if (event.tenant !== tenant) reasons.push(`the event is of tenant ${event.tenant}, the subscription of ${tenant}`)
  if (!types.some((pattern) => patternMatches(pattern, event.type)))
    reasons.push(`the type ${event.type} is not among ${types.join(', ')}`)
  const facts = new EventFacts({ ...event, key: event.orderingKey }, event.body)
  const filter = filterOf(subscription)
  const passed = filter === null ? true : evaluate(filter, facts)
  if (filter !== null && passed === false)
    reasons.push(...explainFilter(filter, facts).map((line) => `filter: ${line}`))
  const matches = reasons.length === 0
  if (passed === 'undecided') reasons.push('the filter reaches its bound of work: the event is sent')
  const transformation = transformationOf(subscription)
  const filled = transformation === null ? null : fillTemplate(transformation, facts)
  const falls = filled?.ok === false && transformation?.onError === 'original'
  if (filled?.ok === false)
    reasons.push(`transformation: ${filled.reason}; ${falls ? "the event's own body" : 'a dead letter'}`)
  if (matches && status === 'paused') reasons.push('it is paused: the delivery would wait')
  if (matches && status === 'disabled')
    reasons.push(`it is disabled: the delivery would ${whileDisabled === 'drop' ? 'be cancelled' : 'wait'}`)
  const own = filled === null || falls
  return {
    matches,
    reasons,
    body: !matches ? null : own ? event.body : filled.ok ? filled.value : null,
    contentType: subscription.contentType ?? (own ? event.contentType : 'application/json'),
  }
}
