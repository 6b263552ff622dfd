import type { LineDetailsJson, LineJson } from '../operations/line-json.ts'
import { orderText } from './order-options.ts'
import { ago, oneLine, plural, table, time } from './text.ts'

export function linesTable(lines: readonly LineJson[], nowMs: number): string {
  const rows = lines.map(({ line, state, parked, sinceMs, lane, head }) => [
    line,
    state,
    String(parked),
    ago(Math.max(0, nowMs - sinceMs)),
    String(lane),
    head ?? '',
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

export function detailsText(details: LineDetailsJson, nowMs: number): string {
  const { line, state, sinceMs, lane, parked: count, head, headDelivery, parkedFirst, order } = details
  const why = {
    blocked: 'behind a head that is retried',
    draining: 'going on',
    stopped: 'its head is dead: release it, skip it, or redrive the head',
  }[state]
  const lines = [
    `line      ${line}`,
    `state     ${state}, ${why}`,
    `for       ${ago(Math.max(0, nowMs - sinceMs))}, since ${time(sinceMs)}`,
    `lane      ${lane}`,
    `parked    ${count}`,
  ]
  if (head !== null) {
    lines.push(`head      ${head}`)
    if (headDelivery === null)
      lines.push('          not in a tier now: it is being attempted, or was moved this moment')
    else {
      const { eventType, eventId, attempts, dueMs, lastError, topic, partition, offset } = headDelivery
      const due = dueMs === null ? '' : `, due ${time(dueMs)}`
      lines.push(`          ${eventType}, event ${eventId}`)
      lines.push(`          ${plural(attempts, 'attempt')}, last ${lastError ?? 'unknown'}${due}`)
      lines.push(`          in ${topic}/${partition} at ${offset}`)
    }
  }
  if (order !== null) lines.push(`order     ${orderText(order, nowMs)}`)
  const text = lines.map(oneLine).join('\n')
  if (parkedFirst.length === 0) return text
  const rows = parkedFirst.map(({ deliveryId, eventType, eventId, eventTimeMs, offset }) => [
    deliveryId,
    eventType,
    eventId,
    ago(Math.max(0, nowMs - eventTimeMs)),
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
