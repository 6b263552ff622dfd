/**
 * Every counter and timer by the name the code uses. The exported name is `hooktide_` + name + `_total` or `_seconds`.
 * Labels are few and their values bounded: never a subscription, a URL, an event or a delivery.
 */
export interface MetricEntry {
  readonly kind: 'counter' | 'timer'
  readonly help: string
  readonly labels?: readonly string[]
  /** Label values that are there at zero from the start: a rate does not see the first increment of a series that only begins with it. */
  readonly start?: readonly Readonly<Record<string, string>>[]
  /** Upper bounds in seconds; default from 1 ms to 30 s. */
  readonly buckets?: readonly number[]
}

export const catalogue: Readonly<Record<string, MetricEntry>> = {
  api_requests: { kind: 'counter', help: 'Requests to the HTTP API', labels: ['route', 'status'] },
  api_request: { kind: 'timer', help: 'Duration of an answer of the HTTP API', labels: ['route'] },
  attempts: {
    kind: 'counter',
    help: 'Attempts settled, by what came back and what followed from it',
    labels: ['outcome', 'settlement'],
    start: [
      { outcome: 'delivered', settlement: 'done' },
      { outcome: 'retryable', settlement: 'scheduled' },
      ...['retryable', 'rejected', 'gone', 'blocked', 'none'].map((outcome) => ({ outcome, settlement: 'dead' })),
    ],
  },
  attempt: { kind: 'timer', help: 'Duration of a POST, from hand-over to verdict', labels: ['outcome'] },
  batches_undecodable: {
    kind: 'counter',
    help: 'Record batches that could not be decoded and were skipped',
    labels: ['topic'],
  },
  circuit_opened: {
    kind: 'counter',
    help: 'Circuits opened after failures, of a subscription or of an origin',
    labels: ['scope'],
    start: [{ scope: 'sub' }, { scope: 'origin' }],
  },
  commit: {
    kind: 'timer',
    help: 'Duration of a settlement transaction of a lane',
    buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
  },
  commit_failed: {
    kind: 'counter',
    help: 'Settlement transactions that failed: the lane was rebuilt',
    labels: ['code'],
    start: ['producer.fenced', 'producer.failed', 'internal'].map((code) => ({ code })),
  },
  consumer_drain_ms: { kind: 'timer', help: 'Duration of a drain before a rejoin', labels: ['group'] },
  consumer_offset_out_of_range: {
    kind: 'counter',
    help: 'Positions that were no longer, or never, in the log: retention passed them or the topic was recreated',
    labels: ['group', 'topic'],
  },
  consumer_rebalances: { kind: 'counter', help: 'Assignments taken, the first one included', labels: ['group'] },
  events_rejected: { kind: 'counter', help: 'Events that could not be read', labels: ['code'] },
  events_routed: { kind: 'counter', help: 'Events routed, by whether a subscription wanted them', labels: ['matched'] },
  filtered_out: { kind: 'counter', help: 'Events that a filter kept from a subscription' },
  filters_undecided: {
    kind: 'counter',
    help: 'Filters that reached their bound of work: the event was sent',
  },
  heads_lost: { kind: 'counter', help: 'Heads of blocked lines that retention took from their tier: the line went on' },
  offset_gap: { kind: 'counter', help: 'Offsets that retention took before they were consumed' },
  objects_unavailable: { kind: 'counter', help: 'Attempts that waited because the object store could not be asked' },
  operational_events_dropped: {
    kind: 'counter',
    help: 'Operational events for which there was no room: the events topic could not be written to',
  },
  parked_lost: { kind: 'counter', help: 'Parked records that retention took before their turn' },
  repeats_dropped: { kind: 'counter', help: 'Deliveries that a router wrote again, recognised by their origin' },
  'secret.unavailable': { kind: 'counter', help: 'Times a signing secret could not be resolved' },
  spans_dropped: { kind: 'counter', help: 'Spans that were not exported: the collector was away or refused them' },
  spans_exported: { kind: 'counter', help: 'Spans that the trace collector took' },
  stale_results: { kind: 'counter', help: 'Results of an earlier ownership of a lane, dropped' },
  state_batch: { kind: 'timer', help: 'Duration of folding and writing a batch of the log into the delivery state' },
  state_failed: { kind: 'counter', help: 'Times the delivery state could not be followed on; it is tried again' },
  state_folded: { kind: 'counter', help: 'Records folded into the delivery state' },
  state_unreadable: { kind: 'counter', help: 'Records that the delivery state could not be told from' },
  subscriptions_disabled: {
    kind: 'counter',
    help: 'Subscriptions disabled: their endpoint answered 410 Gone, or failed for too long',
  },
  subscriptions_failing: { kind: 'counter', help: 'Subscriptions told to be failing' },
  subscriptions_unreadable: { kind: 'counter', help: 'Subscription records that could not be read' },
  tier_lateness: {
    kind: 'timer',
    help: 'How long after its due time a scheduled delivery became ready, per tier',
    labels: ['tier'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300],
  },
  unknown_metrics: {
    kind: 'counter',
    help: 'Measurements under a name that is not in the catalogue: a mistake in Hooktide',
  },
}

export const defaultBuckets: readonly number[] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function exportedName(name: string, kind: MetricEntry['kind']): string {
  const base = name.replace(/[^a-zA-Z0-9_]/g, '_').replace(/_ms$/, '')
  return `hooktide_${base}_${kind === 'counter' ? 'total' : 'seconds'}`
}
