import type { Attempt } from '../core/attempt.ts'
import type { Control } from '../core/control.ts'
import { encodeOrigin } from '../core/delivery.ts'
import type { DeliveryState, Story, StoryPlace } from './delivery-story.ts'

/** Stable shape of a delivery's story. */
export interface StoryJson {
  readonly deliveryId: string
  readonly subscriptionId: string | null
  readonly tenant: string | null
  readonly eventId: string | null
  readonly eventType: string | null
  readonly orderingKey: string | null
  readonly eventTimeMs: number | null
  readonly origin: string | null
  readonly state: DeliveryState
  readonly place: StoryPlace | null
  readonly order: Control | null
  readonly attempts: readonly Attempt[]
  readonly places: readonly StoryPlace[]
  /** Records looked at. */
  readonly scanned: number
}

export function storyJson(id: string, story: Story, order: Control | null): StoryJson {
  const { delivery, attempts, places, state, place, scanned } = story
  const last = attempts.at(-1)
  return {
    deliveryId: id,
    subscriptionId: delivery?.subscriptionId ?? last?.subscriptionId ?? null,
    tenant: delivery?.tenant ?? last?.tenant ?? null,
    eventId: delivery?.eventId ?? last?.eventId ?? null,
    eventType: delivery?.eventType ?? last?.eventType ?? null,
    orderingKey: delivery?.orderingKey ?? null,
    eventTimeMs: delivery?.eventTimeMs ?? null,
    origin: delivery === null ? (last?.origin ?? null) : encodeOrigin(delivery.origin),
    state,
    place,
    order,
    attempts,
    places,
    scanned,
  }
}
