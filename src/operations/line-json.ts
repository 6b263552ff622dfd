import type { Control } from '../core/control.ts'
import { isOrderedLine, subscriptionOfLine } from '../core/line.ts'
import type { DeliveryPlace, StandingLine } from './line-read.ts'

/** Stable shape of a line. */
export interface LineJson {
  readonly line: string
  readonly subscriptionId: string
  readonly orderingKey: string | null
  readonly ordered: boolean
  readonly lane: number
  readonly state: 'blocked' | 'draining' | 'stopped'
  readonly head: string | null
  readonly parked: number
  readonly sinceMs: number
  readonly reason: string | null
}

export interface PlaceJson {
  readonly deliveryId: string
  readonly eventId: string
  readonly eventType: string
  readonly eventTimeMs: number
  readonly attempts: number
  readonly dueMs: number | null
  readonly lastError: string | null
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

export interface LineDetailsJson extends LineJson {
  readonly headDelivery: PlaceJson | null
  readonly parkedFirst: readonly PlaceJson[]
  readonly order: Control | null
}

export function lineJson({ lane, state }: StandingLine): LineJson {
  return {
    line: state.line,
    subscriptionId: subscriptionOfLine(state.line),
    orderingKey: orderingKeyOf(state.line),
    ordered: isOrderedLine(state.line),
    lane,
    state: state.state,
    head: state.head,
    parked: state.count,
    sinceMs: state.sinceMs,
    reason: state.reason ?? null,
  }
}

export function lineDetailsJson(parts: {
  readonly line: StandingLine
  readonly head: DeliveryPlace | null
  readonly parked: readonly DeliveryPlace[]
  readonly order: Control | null
}): LineDetailsJson {
  const { line, head, parked, order } = parts
  return {
    ...lineJson(line),
    headDelivery: head === null ? null : placeJson(head),
    parkedFirst: parked.map(placeJson),
    order,
  }
}

function placeJson({ topic, partition, offset, delivery }: DeliveryPlace): PlaceJson {
  return {
    deliveryId: delivery.id,
    eventId: delivery.eventId,
    eventType: delivery.eventType,
    eventTimeMs: delivery.eventTimeMs,
    attempts: delivery.attempts,
    dueMs: delivery.dueMs,
    lastError: delivery.lastError,
    topic,
    partition,
    offset,
  }
}

function orderingKeyOf(line: string): string | null {
  const at = line.indexOf(' ')
  return line.startsWith(' k ', at) ? line.slice(at + 3) : null
}
