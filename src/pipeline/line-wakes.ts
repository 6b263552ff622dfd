import type { Orders } from '../core/orders.ts'
import type { LaneGate } from './lane-gate.ts'
import type { Lines } from './lines.ts'

/** What waited for the subscription may start, or must come out. */
export function wakeSubscription(lines: Lines, id: string): void {
  for (const line of [...lines]) if (line.subscriptionId === id) lines.pump(line)
}

export function obeyOrder(lines: Lines, orders: Orders, kind: string, target: string): void {
  if (kind === 'subscription') wakeSubscription(lines, target)
  else if (kind === 'line') releaseLine(lines, orders, target)
  else if (kind === 'delivery') {
    // A cancelled head sets its line free now; its record is settled when it is ripe.
    for (const line of [...lines]) if (line.state?.head === target) lines.release(line.key)
  }
}

/** All that waited for the circuit goes on; or, half open, the first that can be tried. */
export function wakeCircuit(lines: Lines, gate: LaneGate, circuit: string, closed: boolean): void {
  for (const line of [...lines]) {
    if (!gate.concerns(circuit, line.subscriptionId)) continue
    lines.pump(line)
    if (!closed && line.open.size > 0) return
  }
}

/** Orders from before the line stood are about an earlier time. */
function releaseLine(lines: Lines, orders: Orders, key: string): void {
  const line = lines.get(key)
  const releasedMs = orders.lineReleasedMs(key)
  if (line?.state === undefined || line.state === null || releasedMs === null) return
  if (releasedMs >= line.state.sinceMs) lines.release(key)
  lines.pump(line)
}
