import { Counter, Gauge, type Registry } from 'prom-client'
import type { Vitals } from '../core/vitals.ts'
import type { Clock } from '../ports.ts'

/**
 * The vital signs as metrics, read when they are scraped. What is absent (nothing waits, nothing known) is left out
 * rather than shown as zero; what the catalogue's counters tell already is not told twice.
 */
export class VitalGauges {
  readonly #clock: Clock
  readonly #readyDepth: Gauge
  readonly #oldestReady: Gauge
  readonly #inFlight: Gauge
  readonly #inFlightBytes: Gauge
  readonly #tierHeld: Gauge
  readonly #tierLowestDue: Gauge
  readonly #tierPromoted: Counter
  readonly #clockOffset: Gauge
  readonly #lastCommit: Gauge
  readonly #lag: Gauge
  readonly #paused: Gauge
  readonly #lanes: Gauge

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name: `hooktide_${name}`, help, labelNames, registers: [registry] })
    this.#readyDepth = gauge('ready_depth', 'Deliveries in memory that could start now')
    this.#oldestReady = gauge(
      'oldest_ready_age_seconds',
      'How long the oldest ready delivery has been waiting; 0: none waits',
    )
    this.#inFlight = gauge('in_flight', 'Open POSTs')
    this.#inFlightBytes = gauge('in_flight_bytes', 'Body bytes of open POSTs')
    this.#tierHeld = gauge('tier_held', 'Scheduled deliveries in memory, per tier', ['tier'])
    this.#tierLowestDue = gauge(
      'tier_lowest_due_seconds',
      'Lowest due time of a tier against the clock: negative is overdue; absent: nothing waits',
      ['tier'],
    )
    this.#tierPromoted = new Counter({
      name: 'hooktide_tier_promoted_total',
      help: 'Deliveries that became ripe and went on, per tier',
      labelNames: ['tier'],
      registers: [registry],
    })
    this.#clockOffset = gauge('clock_offset_seconds', "Broker's clock above ours; absent: not known yet")
    this.#lastCommit = gauge(
      'last_commit_seconds',
      'Duration of the slowest last settlement transaction; absent: none yet',
    )
    this.#lag = gauge('consumer_lag', 'Records behind the committed positions', ['group', 'topic'])
    this.#paused = gauge('paused_partitions', 'Partitions paused now, by reason', ['reason'])
    this.#lanes = gauge('lanes', 'Lanes owned, by state', ['state'])
  }

  set(vitals: Vitals): void {
    this.#readyDepth.set(vitals.readyDepth)
    this.#oldestReady.set((vitals.oldestReadyAgeMs ?? 0) / 1000)
    this.#inFlight.set(vitals.inFlight.count)
    this.#inFlightBytes.set(vitals.inFlight.bytes)
    for (const metric of [this.#tierHeld, this.#tierLowestDue, this.#tierPromoted]) metric.reset()
    for (const { tier, held, lowestDueMs, promoted } of vitals.tiers) {
      this.#tierHeld.set({ tier }, held)
      this.#tierPromoted.inc({ tier }, promoted)
      if (lowestDueMs !== null) this.#tierLowestDue.set({ tier }, (lowestDueMs - this.#clock.now()) / 1000)
    }
    orAbsent(this.#clockOffset, vitals.clockOffsetMs)
    orAbsent(this.#lastCommit, vitals.commitMs)
    for (const metric of [this.#lag, this.#paused, this.#lanes]) metric.reset()
    for (const { group, topic, records } of vitals.lag) this.#lag.set({ group, topic }, records)
    for (const [reason, count] of Object.entries(vitals.paused)) this.#paused.set({ reason }, count)
    for (const { state } of vitals.lanes) this.#lanes.inc({ state })
  }
}

function orAbsent(gauge: Gauge, ms: number | null): void {
  if (ms === null) gauge.remove()
  else gauge.set(ms / 1000)
}
