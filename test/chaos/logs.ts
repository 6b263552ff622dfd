import type { Fleet } from './fleet.ts'

/** What a worker may never have to say, whatever is done to it. */
const alarming: ReadonlySet<string> = new Set([
  'process.fatal',
  'service.fatal',
  'consumer.fatal',
  'consumer.handler_failed',
  'consumer.drain_failed',
  'consumer.resumed_without_seek',
  'consumer.offset_out_of_range',
  'lane.offset_out_of_range',
  'batch.undecodable',
  'kafka.undecodable',
  'delivery.unreadable',
  'lane_state.unreadable',
  'subscription.unreadable',
  'control.unreadable',
  'parked.lost',
  'line.head_lost',
  'lane.foreign_metadata',
  'metric.unknown',
  'service.aborting',
  'service.unhealthy',
])

export function logProblems(fleet: Fleet): string[] {
  return fleet.all.flatMap((worker) =>
    worker.lines().flatMap(({ event, fields }) => {
      // Node's own warnings and stack traces are not JSON.
      if (event === 'text') return [`log: ${worker.id} wrote ${String(fields.text).slice(0, 200)}`]
      return alarming.has(event) ? [`log: ${worker.id} ${JSON.stringify(fields).slice(0, 300)}`] : []
    }),
  )
}

/** Memberships lost by processes that no fault of ours had struck. */
export function selfInflicted(fleet: Fleet): number {
  const broker = fleet.faults.some(({ process }) => process === null)
  if (broker) return 0
  return fleet.all
    .filter(({ name, incarnation }) => !fleet.faults.some((f) => f.process === name && f.incarnation === incarnation))
    .reduce((sum, worker) => sum + worker.lines().filter(({ event }) => event === 'consumer.evicted').length, 0)
}
