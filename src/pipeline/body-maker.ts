import type { Delivery } from '../core/delivery.ts'
import { EventFacts } from '../core/event-facts.ts'
import type { Reply } from '../core/outcome.ts'
import type { Subscription } from '../core/subscription.ts'
import { transformationOf } from '../core/subscription-content.ts'
import { fillTemplate } from '../core/transform-run.ts'

/** What a POST carries, or what came of it without one. */
export type MadeBody =
  | { readonly t: 'ready'; readonly body: Buffer; readonly contentType: string }
  | { readonly t: 'failed'; readonly reply: Reply }

/**
 * The body of an attempt. Transformations happen here, at dispatch, and not when the event is routed: records keep the
 * original, so a redrive uses the template of its day, and one event is stored alike for all who want it.
 */
export function makeBody(subscription: Subscription, delivery: Delivery, original: Buffer): MadeBody {
  const contentType = subscription.contentType ?? delivery.contentType
  const transformation = transformationOf(subscription)
  if (transformation === null) return { t: 'ready', body: original, contentType }
  const { eventId: id, eventType: type, tenant, orderingKey: key, eventTimeMs: timeMs } = delivery
  const facts = new EventFacts({ id, type, tenant, key, timeMs, contentType: delivery.contentType }, original)
  const filled = fillTemplate(transformation, facts)
  if (filled.ok) {
    return { t: 'ready', body: filled.value, contentType: subscription.contentType ?? 'application/json' }
  }
  if (transformation.onError === 'original') return { t: 'ready', body: original, contentType }
  return failed(`transformation: ${filled.reason}`)
}

export function failed(detail: string): MadeBody {
  return { t: 'failed', reply: { t: 'failure', class: 'body', detail, durationMs: 0 } }
}
