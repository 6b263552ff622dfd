import type { Line } from '../core/line.ts'
import type { Orders } from '../core/orders.ts'
import type { LaneGate } from './lane-gate.ts'
import type { Lines } from './lines.ts'
import type { Work } from './work.ts'

/** What waited for the subscription may start, or must come out; what may not is moved out of memory. */
export function wakeSubscription(lines: Lines, id: string, deleted: boolean): void {
  for (const line of [...lines]) {
    if (line.subscriptionId !== id) continue
    if (deleted) letGo(lines, line)
    lines.pump(line)
  }
}

export function obeyOrder(lines: Lines, orders: Orders, kind: string, target: string, nowMs: number): void {
  if (kind === 'subscription') wakeSubscription(lines, target, false)
  else if (kind === 'line') {
    const line = lines.get(target)
    if (line !== undefined) obeyLine(lines, orders, line, nowMs)
  } else if (kind === 'delivery') {
    // A cancelled head sets its line free now; its record is settled when it is ripe.
    for (const line of [...lines]) if (line.state?.head === target) obeyLine(lines, orders, line, nowMs)
  }
}

/** Orders, and deletions, that came while nobody owned the lane. */
export function obeyAll(
  lines: Lines,
  orders: Orders,
  nowMs: number,
  exists: (subscriptionId: string) => boolean,
): void {
  for (const line of [...lines]) {
    if (!exists(line.subscriptionId)) letGo(lines, line)
    obeyLine(lines, orders, line, nowMs)
  }
}

/** Of a subscription that is deleted: nobody will ever decide about a dead head, and what is behind it is to be cancelled. */
function letGo(lines: Lines, line: Line<Work>): void {
  if (line.state?.state === 'stopped') lines.release(line.key)
}

/** Whoever owns this lane next may not own the one whose POST opened the circuit. */
export function noteCircuit(lines: Lines, gate: LaneGate, circuit: string): void {
  if ([...lines].some(({ subscriptionId }) => gate.concerns(circuit, subscriptionId))) gate.note(circuit)
}

/** All that waited for the circuit goes on; or, half open, the first that can be tried. */
export function wakeCircuit(lines: Lines, gate: LaneGate, circuit: string, closed: boolean): void {
  if (closed) gate.closed(circuit)
  for (const line of [...lines]) {
    if (!gate.concerns(circuit, line.subscriptionId)) continue
    lines.pump(line)
    if (!closed && line.open.size > 0) return
  }
}

function obeyLine(lines: Lines, orders: Orders, line: Line<Work>, nowMs: number): void {
  if (line.state !== null && line.state.state !== 'draining' && orders.released(line.state, nowMs)) {
    lines.release(line.key)
  }
  lines.pump(line)
}
