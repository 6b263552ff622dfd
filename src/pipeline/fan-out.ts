import { deliveryHeader, encodeDelivery } from '../core/delivery.ts'
import { deliveryId } from '../core/delivery-id.ts'
import type { Event } from '../core/event.ts'
import { laneOf } from '../core/partition.ts'
import type { OutRecord } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import { urlMark } from '../core/url-mark.ts'

export interface EventOrigin {
  readonly stream: string
  readonly generation: number
  readonly offset: number
}

/** One delivery per subscription, in the given order: sorted by id, as lanes need it to recognise repeats. */
export function fanOut(
  topic: string,
  lanes: number,
  event: Event,
  subscriptions: readonly Subscription[],
  origin: EventOrigin,
): OutRecord[] {
  let shared: Record<string, Buffer> | null = null
  return subscriptions.map((subscription) => {
    const id = deliveryId(event.identity, subscription.id)
    // What does not depend on the subscription is encoded once per event.
    shared ??= encodeDelivery({
      id: '',
      subscriptionId: '',
      tenant: event.tenant,
      eventId: event.id,
      eventType: event.type,
      contentType: event.contentType,
      orderingKey: event.orderingKey,
      origin,
      eventTimeMs: event.timeMs,
      attempts: 0,
      dueMs: null,
      lastError: null,
      traceparent: event.traceparent,
      ...(event.claim === undefined ? {} : { claim: event.claim }),
    })
    const headers = Object.assign(Object.create(null) as Record<string, Buffer>, shared)
    headers[deliveryHeader.id] = Buffer.from(id)
    headers[deliveryHeader.subscription] = Buffer.from(subscription.id)
    headers[deliveryHeader.url] = Buffer.from(urlMark(subscription.url))
    return { topic, partition: laneOf(subscription, id, lanes), key: subscription.id, value: event.body, headers }
  })
}
