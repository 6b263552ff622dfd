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
  readonly #membershipAge: Gauge
  readonly #clockOffset: Gauge
  readonly #lastCommit: Gauge
  readonly #lag: Gauge
  readonly #paused: Gauge
  readonly #lanes: Gauge
  readonly #laneCount: Gauge
  readonly #backlog: Gauge
  readonly #done: Gauge
  readonly #inFlightMax: Gauge
  readonly #utilisation: Gauge
  readonly #lines: Gauge
  readonly #parked: Gauge
  readonly #bypassed: Gauge
  readonly #circuits: Gauge
  readonly #subscriptions: Gauge
  readonly #jobParts: Gauge
  readonly #projectorLag: Gauge
  readonly #worstAge: Gauge
  readonly #worstFailures: Gauge

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
    this.#membershipAge = gauge(
      'membership_age_seconds',
      'Since Kafka last confirmed our membership in a group: it grows while no broker can be reached',
    )
    this.#clockOffset = gauge('clock_offset_seconds', "Broker's clock above ours; absent: not known yet")
    this.#lastCommit = gauge(
      'last_commit_seconds',
      'Duration of the slowest last settlement transaction; absent: none yet',
    )
    this.#lag = gauge('consumer_lag', 'Records behind the committed positions', ['group', 'topic'])
    this.#paused = gauge('paused_partitions', 'Partitions paused now, by reason', ['reason'])
    this.#lanes = gauge('lanes', 'Lanes owned, by state', ['state'])
    this.#laneCount = gauge('lanes_configured', 'Lanes there are; absent: this process does not deliver')
    this.#backlog = gauge(
      'ready_backlog',
      'Of a lane owned here, records of deliveries that are not done; absent: not known now',
      ['lane'],
    )
    this.#done = gauge(
      'lane_done_offsets',
      'How far a lane owned here is in deliveries: it stands still when the lane does',
      ['lane'],
    )
    this.#inFlightMax = gauge('in_flight_max', 'Most POSTs that may be open')
    this.#utilisation = gauge('executor_utilisation', 'Open POSTs against the most there may be, 0 to 1')
    this.#lines = gauge('lines', 'Lines that are not open, by state', ['state'])
    this.#parked = gauge('parked_deliveries', 'Deliveries parked in lines, by the state of the line', ['state'])
    this.#bypassed = gauge('bypassed_subscriptions', 'Subscriptions whose backlog is passed by')
    this.#circuits = gauge('circuits_open', 'Circuits that are not closed, by scope', ['scope'])
    this.#subscriptions = gauge('subscriptions', 'Subscriptions in the table, by status', ['status'])
    this.#jobParts = gauge('job_parts', 'Parts of replays and redrives worked here; absent: no router is here')
    this.#projectorLag = gauge(
      'projector_lag',
      'Records of the log that are not in the delivery state; absent: it is not kept here',
    )
    this.#worstAge = gauge(
      'subscription_oldest_ready_age_seconds',
      'The worst subscriptions: how long the oldest ready delivery waits',
      ['subscription'],
    )
    this.#worstFailures = gauge('subscription_failures', 'The worst subscriptions: attempts that failed in a row', [
      'subscription',
    ])
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
    orAbsent(this.#membershipAge, seconds(vitals.membershipAgeMs))
    orAbsent(this.#clockOffset, seconds(vitals.clockOffsetMs))
    orAbsent(this.#lastCommit, seconds(vitals.commitMs))
    for (const metric of [this.#lag, this.#paused, this.#lanes]) metric.reset()
    for (const { group, topic, records } of vitals.lag) this.#lag.set({ group, topic }, records)
    for (const [reason, count] of Object.entries(vitals.paused)) this.#paused.set({ reason }, count)
    for (const { state } of vitals.lanes) this.#lanes.inc({ state })
    orAbsent(this.#laneCount, vitals.laneCount)
    this.#setAmounts(vitals)
    this.#setWorst(vitals)
  }

  #setAmounts(vitals: Vitals): void {
    this.#inFlightMax.set(vitals.maxInFlight)
    this.#utilisation.set(vitals.maxInFlight === 0 ? 0 : vitals.inFlight.count / vitals.maxInFlight)
    this.#bypassed.set(vitals.bypassed)
    orAbsent(this.#jobParts, vitals.jobParts)
    orAbsent(this.#projectorLag, vitals.projectorLag)
    const labelled = [this.#backlog, this.#done, this.#lines, this.#parked, this.#circuits, this.#subscriptions]
    for (const gauge of labelled) gauge.reset()
    for (const { lane, records, done } of vitals.backlog) {
      this.#done.set({ lane }, done)
      if (records !== null) this.#backlog.set({ lane }, records)
    }
    for (const [state, { lines, parked }] of Object.entries(vitals.lines)) {
      this.#lines.set({ state }, lines)
      this.#parked.set({ state }, parked)
    }
    for (const [scope, open] of Object.entries(vitals.circuits)) this.#circuits.set({ scope }, open)
    for (const [status, n] of Object.entries(vitals.subscriptions)) this.#subscriptions.set({ status }, n)
  }

  /** The only labels that name a subscription: of a bounded number, and who is no longer among the worst is gone from here. */
  #setWorst({ worst }: Vitals): void {
    this.#worstAge.reset()
    this.#worstFailures.reset()
    for (const { subscriptionId: subscription, oldestReadyAgeMs, failures } of worst) {
      if (oldestReadyAgeMs > 0) this.#worstAge.set({ subscription }, oldestReadyAgeMs / 1000)
      if (failures > 0) this.#worstFailures.set({ subscription }, failures)
    }
  }
}

function orAbsent(gauge: Gauge, value: number | null): void {
  if (value === null) gauge.remove()
  else gauge.set(value)
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000
}
