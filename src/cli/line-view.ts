import type { Control } from '../core/control.ts'
import { isOrderedLine, subscriptionOfLine } from '../core/line.ts'
import type { DeliveryPlace, StandingLine } from '../operations/line-read.ts'
import { orderText } from './order-options.ts'
import { ago, oneLine, plural, table, time } from './text.ts'

/** Stable shape of a line in JSON. */
export function lineJson({ lane, state }: StandingLine): object {
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

export function linesTable(lines: readonly StandingLine[], nowMs: number): string {
  const rows = lines.map(({ lane, state }) => [
    state.line,
    state.state,
    String(state.count),
    ago(Math.max(0, nowMs - state.sinceMs)),
    String(lane),
    state.head ?? '',
  ])
  const columns = [
    { title: 'LINE', max: 36 },
    { title: 'STATE' },
    { title: 'PARKED', right: true },
    { title: 'FOR' },
    { title: 'LANE', right: true },
    { title: 'HEAD', max: 28 },
  ]
  return table(columns, rows)
}

export interface LineDetails {
  readonly line: StandingLine
  readonly head: DeliveryPlace | null
  readonly parked: readonly DeliveryPlace[]
  readonly order: Control | null
}

export function detailsJson({ line, head, parked, order }: LineDetails): object {
  return {
    ...lineJson(line),
    headDelivery: head === null ? null : placeJson(head),
    parkedFirst: parked.map(placeJson),
    order,
  }
}

export function detailsText({ line: { lane, state }, head, parked, order }: LineDetails, nowMs: number): string {
  const why = {
    blocked: 'behind a head that is retried',
    draining: 'going on',
    stopped: 'its head is dead: release it, skip it, or redrive the head',
  }[state.state]
  const lines = [
    `line      ${state.line}`,
    `state     ${state.state}, ${why}`,
    `for       ${ago(Math.max(0, nowMs - state.sinceMs))}, since ${time(state.sinceMs)}`,
    `lane      ${lane}`,
    `parked    ${state.count}`,
  ]
  if (state.head !== null) {
    lines.push(`head      ${state.head}`)
    if (head === null) lines.push('          not in a tier now: it is being attempted, or was moved this moment')
    else {
      const { delivery, topic, partition, offset } = head
      const due = delivery.dueMs === null ? '' : `, due ${time(delivery.dueMs)}`
      lines.push(`          ${delivery.eventType}, event ${delivery.eventId}`)
      lines.push(`          ${plural(delivery.attempts, 'attempt')}, last ${delivery.lastError ?? 'unknown'}${due}`)
      lines.push(`          in ${topic}/${partition} at ${offset}`)
    }
  }
  if (order !== null) lines.push(`order     ${orderText(order, nowMs)}`)
  const text = lines.map(oneLine).join('\n')
  if (parked.length === 0) return text
  const rows = parked.map(({ delivery, offset }) => [
    delivery.id,
    delivery.eventType,
    delivery.eventId,
    ago(Math.max(0, nowMs - delivery.eventTimeMs)),
    String(offset),
  ])
  const columns = [
    { title: 'PARKED', max: 30 },
    { title: 'TYPE', max: 20 },
    { title: 'EVENT', max: 24 },
    { title: 'AGE' },
    { title: 'AT', right: true },
  ]
  return `${text}\n\n${table(columns, rows)}`
}

function placeJson({ topic, partition, offset, delivery }: DeliveryPlace): object {
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
