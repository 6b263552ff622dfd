import type { ClockOffset } from '../core/clock-offset.ts'
import { decodeDelivery, lineHeader } from '../core/delivery.ts'
import type { Ladder } from '../core/ladder.ts'
import type { LineState } from '../core/lane-state.ts'
import { type Line, lineKeyOf, overflowKeyOf } from '../core/line.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { OriginFilter } from '../core/origin-filter.ts'
import type { Outcome, Reply } from '../core/outcome.ts'
import { type FetchedBatch, type GroupOffset, type InRecord, type OutRecord, recordBytes } from '../core/record.ts'
import { rejectedRecord } from '../core/rejected.ts'
import { policyFor, type RetryPolicy } from '../core/retry-policy.ts'
import { type Settlement, settle } from '../core/settle.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Appended, Clock, Observer } from '../ports.ts'
import type { Executor } from './executor.ts'
import type { LaneFlow } from './lane-flow.ts'
import { type AttemptFacts, toAttempt, toDead, toParked, toTier } from './lane-records.ts'
import type { LaneTopics } from './lane-topics.ts'
import { Lines, type LinesHost, type LinesOptions } from './lines.ts'
import { Pending } from './pending.ts'
import { TierQueue } from './tier-queue.ts'
import type { Work, WorkOwner } from './work.ts'

/** What every lane of a process shares. */
export interface LaneWorld {
  readonly clock: Clock
  readonly observer: Observer
  readonly executor: Executor
  readonly topics: LaneTopics
  readonly ladder: Ladder
  readonly policy: RetryPolicy
  readonly clockOffset: ClockOffset
  readonly lines: LinesOptions
  /** Records of one subscription that may wait in a lane's memory; the rest is parked. */
  readonly maxWaitingPerSubscription: number
  subscription(id: string): Subscription | undefined
  /** Resolves when the table is as new as its topic was at the call. */
  freshen(): Promise<void>
  /** The endpoint answered 410. */
  gone(subscription: Subscription): void
}

/** What a lane starts from: what Kafka holds of it. */
export interface LaneStart {
  readonly partition: number
  readonly epoch: number
  /** `deliveries` first, then the tiers, as in `sourceTopics`. */
  readonly trackers: readonly OffsetTracker[]
  readonly lines: readonly LineState[]
  readonly filter: OriginFilter
  readonly parkedEnd: number
}

/** One transaction's worth: what is written and what is done by it. */
export interface LaneSnapshot {
  readonly records: readonly OutRecord[]
  readonly offsets: readonly GroupOffset[]
  readonly settled: number
  readonly moves: number
  readonly parked: number
  readonly takenAtMs: number
}

/**
 * One lane: partition p of every internal topic, owned by this process in this epoch. Synchronous throughout; the
 * runner around it fetches, commits and asks it again.
 */
export class Lane implements WorkOwner, LinesHost {
  readonly partition: number
  readonly epoch: number
  readonly #world: LaneWorld
  readonly #trackers: readonly OffsetTracker[]
  readonly #filter: OriginFilter
  readonly #lines: Lines
  readonly #pending: Pending
  readonly #tiers: TierQueue[]
  readonly #flow: LaneFlow
  readonly #waiting = new Map<string, number>()
  readonly #inFlight = new Set<Work>()
  /** Deliveries whose subscription the table does not know (yet). */
  #strangers: { work: Work; lineKey: string | null }[] = []
  #parkedEnd: number
  /** Moves to `parked` taken into a transaction whose end is not known. */
  #parkedUnderWay = 0
  /** Tracker versions that stand in a commit, under way or done. */
  readonly #committed: number[]
  #closed = false
  readonly #touched: () => void
  readonly counts = { repeats: 0, rejected: 0, promoted: new Map<string, number>() }

  /** `touched`: something may have to be committed, promoted or read now. */
  constructor(world: LaneWorld, start: LaneStart, flow: LaneFlow, touched: () => void) {
    this.#touched = touched
    this.#world = world
    this.partition = start.partition
    this.epoch = start.epoch
    this.#trackers = start.trackers
    this.#filter = start.filter
    this.#parkedEnd = start.parkedEnd
    this.#flow = flow
    this.#pending = new Pending(world.topics.laneState, start.partition)
    this.#tiers = world.ladder.tiers.map((tier) => new TierQueue(tier.delayMs))
    this.#lines = new Lines(this, world.lines, start.lines)
    this.#committed = start.trackers.map((tracker) => tracker.version)
  }

  // ---- what comes in -------------------------------------------------------------------------------------------

  /** A batch of `deliveries` (index 0) or of tier `index − 1`. */
  onBatch(index: number, batch: FetchedBatch): void {
    if (this.#closed) return
    const tracker = this.#trackers[index] as OffsetTracker
    for (const record of batch.records) {
      if (!tracker.admits(record.offset)) {
        this.#flow.truncated(index)
        this.#relieve(index)
        this.#afterIntake()
        return
      }
      const known = record.offset < tracker.next
      const fresh = tracker.see(record.offset)
      if (!known) this.#take(index, record, fresh)
    }
    tracker.pass(batch.nextOffset)
    this.#afterIntake()
  }

  #take(index: number, record: InRecord, fresh: boolean): void {
    const decoded = decodeDelivery(record)
    if (!decoded.ok) {
      if (fresh) this.#reject(index, record, decoded.reason)
      return
    }
    const delivery = decoded.value
    if (index === 0 && !this.#filter.accept(record.offset, delivery.origin, delivery.subscriptionId)) {
      if (!fresh) return
      this.counts.repeats++
      this.#trackers[0]?.done(record.offset)
      this.#pending.settled()
      return
    }
    if (!fresh) return
    const work: Work = {
      delivery,
      record,
      source: index === 0 ? 'deliveries' : 'tier',
      tier: index - 1,
      offset: record.offset,
      bytes: recordBytes(record),
      owner: this,
      readyAtMs: this.#world.clock.now(),
      line: null,
    }
    this.#flow.added(index, work.bytes)
    if (index === 0) this.#arrive(work)
    else this.#tiers[index - 1]?.push(work, record.timestampMs)
  }

  #arrive(work: Work): void {
    const { subscriptionId } = work.delivery
    const subscription = this.#world.subscription(subscriptionId)
    if (subscription === undefined || this.#hasStranger(subscriptionId)) return this.#stranger(work, null)
    const waiting = (this.#waiting.get(subscriptionId) ?? 0) + 1
    this.#waiting.set(subscriptionId, waiting)
    const crowded = waiting > this.#world.maxWaitingPerSubscription
    const key = lineKeyOf(subscription, work.delivery)
    if (key !== null) return this.#lines.arrive(key, work, crowded)
    if (crowded || subscription.status !== 'active') return this.#lines.overflow(overflowKeyOf(subscriptionId), work)
    this.#world.executor.offer(work)
  }

  /** Back from a tier and due. */
  #ripe(work: Work): void {
    const { subscriptionId } = work.delivery
    const key = work.record.headers[lineHeader]?.toString() ?? null
    work.readyAtMs = this.#world.clock.now()
    const subscription = this.#world.subscription(subscriptionId)
    if (subscription === undefined || this.#hasStranger(subscriptionId)) return this.#stranger(work, key)
    this.#waiting.set(subscriptionId, (this.#waiting.get(subscriptionId) ?? 0) + 1)
    if (key !== null && this.#lines.ripe(key, work)) return
    if (subscription.status !== 'active') return this.#lines.overflow(overflowKeyOf(subscriptionId), work)
    this.#world.executor.offer(work)
  }

  /** Later records must not overtake one that waits for the table. */
  #hasStranger(subscriptionId: string): boolean {
    return this.#strangers.length > 0 && this.#strangers.some(({ work }) => work.delivery.subscriptionId === subscriptionId)
  }

  /** The table may be behind the router's: ask again before a delivery is cancelled. */
  #stranger(work: Work, lineKey: string | null): void {
    this.#strangers.push({ work, lineKey })
    if (this.#strangers.length > 1) return
    this.#world.freshen().then(
      () => this.#resolveStrangers(),
      () => this.#resolveStrangersLater(),
    )
  }

  #resolveStrangersLater(): void {
    this.#world.clock.after(1_000, () => {
      if (this.#closed || this.#strangers.length === 0) return
      this.#world.freshen().then(
        () => this.#resolveStrangers(),
        () => this.#resolveStrangersLater(),
      )
    })
  }

  #resolveStrangers(): void {
    if (this.#closed) return
    const strangers = this.#strangers
    this.#strangers = []
    for (const { work, lineKey } of strangers) {
      if (this.#world.subscription(work.delivery.subscriptionId) === undefined) this.#cancel(work, lineKey, 'subscription deleted')
      else if (work.source === 'deliveries') this.#arrive(work)
      else this.#ripe(work)
    }
    this.#afterIntake()
  }

  /** A batch of `parked`, read at `from` for the lines that drain. */
  onParked(from: number, batch: FetchedBatch): void {
    if (this.#closed) return
    const settled = this.#pending.parked === 0 && this.#parkedUnderWay === 0
    this.#lines.onParked(from, batch, settled ? this.#parkedEnd : null)
    this.#afterIntake()
  }

  /** Offset from which `parked` is to be read now; null: not needed. */
  parkedWanted(): number | null {
    return this.#closed ? null : this.#lines.wanted()
  }

  // ---- time ----------------------------------------------------------------------------------------------------

  /** Promotes what is due. Returns when to be called again (epoch ms), null when nothing is held. */
  tick(): number | null {
    if (this.#closed) return null
    const { clock, clockOffset, ladder } = this.#world
    const now = clock.now()
    const broker = clockOffset.brokerAtLeastMs(now)
    let next: number | null = null
    for (const [i, tier] of this.#tiers.entries()) {
      for (let work = tier.takeRipe(broker); work !== null; work = tier.takeRipe(broker)) {
        const left = (work.delivery.dueMs ?? 0) - now
        const hop = ladder.pick(left)
        if (left <= 0) this.#promote(i, work)
        else if (hop === null) tier.wait(work)
        else this.#hop(work, hop)
      }
      for (let work = tier.takeDue(now); work !== null; work = tier.takeDue(now)) this.#promote(i, work)
      const at = tier.nextMs(broker - now)
      if (at !== null && (next === null || at < next)) next = at
    }
    this.#afterIntake()
    return next
  }

  #promote(tier: number, work: Work): void {
    const name = this.#world.ladder.tiers[tier]?.name ?? ''
    this.counts.promoted.set(name, (this.counts.promoted.get(name) ?? 0) + 1)
    this.#world.observer.time('tier_lateness', this.#world.clock.now() - (work.delivery.dueMs ?? 0), { tier: name })
    this.#ripe(work)
  }

  /** Not due for longer than the next tier's delay: on to that tier, same attempt count, same due time. */
  #hop(work: Work, tier: number): void {
    const { attempts, dueMs, lastError } = work.delivery
    const topic = this.#world.topics.tiers[tier] as string
    const key = work.record.headers[lineHeader]
    const out = toTier(topic, this.partition, work, { attempts, dueMs: dueMs ?? 0, error: lastError })
    // Its line is not looked up while it only passes through.
    this.#pending.move(key === undefined ? out : { ...out, headers: { ...out.headers, [lineHeader]: key } })
    this.#release(work, true)
  }

  // ---- the executor's side -------------------------------------------------------------------------------------

  begin(work: Work): 'go' | 'dropped' {
    if (this.#closed) return 'dropped'
    const subscription = this.#world.subscription(work.delivery.subscriptionId)
    if (subscription === undefined) {
      this.#cancel(work, null, 'subscription deleted')
      return 'dropped'
    }
    if (subscription.status !== 'active') {
      if (work.line === null) this.#lines.overflow(overflowKeyOf(subscription.id), work)
      else this.#lines.putBack(work)
      return 'dropped'
    }
    this.#inFlight.add(work)
    return 'go'
  }

  /** What a POST came to. Results of a lost lane are dropped and counted: a successor repeats them. */
  finish(work: Work, facts: AttemptFacts & { readonly reply: Reply; readonly outcome: Outcome }): void {
    if (this.#closed || !this.#inFlight.delete(work)) {
      this.#world.observer.count('stale_results')
      return
    }
    const { clock, ladder } = this.#world
    const subscription = this.#world.subscription(work.delivery.subscriptionId)
    const settlement = settle({
      outcome: facts.outcome,
      attempt: facts.attempt,
      policy: policyFor(this.#world.policy, subscription?.retry),
      ladder,
      nowMs: clock.now(),
      random: clock.random(),
    })
    if (settlement.t === 'released') return this.#again(work)
    this.#apply(work, settlement, facts)
    if (facts.outcome.t === 'gone' && subscription !== undefined) this.#world.gone(subscription)
    this.#afterIntake()
  }

  #again(work: Work): void {
    work.readyAtMs = this.#world.clock.now()
    if (work.line !== null) {
      this.#lines.putBack(work)
      this.#world.clock.after(interruptedPauseMs, () => this.#closed || this.#lines.pump(work.line as Line<Work>))
    } else this.#world.clock.after(interruptedPauseMs, () => this.#closed || this.#world.executor.offer(work))
  }

  /** Settled without a POST. A line's head goes through its line, so that the line goes on. */
  #cancel(work: Work, lineKey: string | null, reason: string): void {
    if (lineKey !== null && work.line === null && this.#lines.ripe(lineKey, work)) return
    const facts = { attempt: work.delivery.attempts + 1, startedAtMs: this.#world.clock.now(), url: '', reply: null, outcome: null }
    this.#apply(work, { t: 'cancelled', reason }, facts)
  }

  /** Writes what follows from a settlement: the move, if any, the source, the line's state and the attempt, in one step. */
  #apply(work: Work, settlement: Exclude<Settlement, { t: 'released' }>, facts: AttemptFacts): void {
    const { topics, clock } = this.#world
    switch (settlement.t) {
      case 'done':
      case 'cancelled':
        break
      case 'scheduled': {
        const change = { attempts: facts.attempt, dueMs: settlement.dueMs, error: settlement.error }
        this.#pending.move(toTier(topics.tiers[settlement.tier] as string, this.partition, work, change))
        break
      }
      case 'dead': {
        const change = { attempts: facts.attempt, reason: settlement.reason, error: settlement.error, atMs: Math.floor(clock.now()) }
        this.#pending.move(toDead(topics.dead, this.partition, work, change))
        break
      }
      default:
        settlement satisfies never
    }
    this.#pending.append(toAttempt(topics.attempts, this.partition, work, facts, settlement))
    this.#report(work, settlement, facts)
    this.#release(work, false)
    if (work.line !== null) this.#lines.settled(work, settlement.t === 'scheduled')
  }

  #report(work: Work, settlement: Settlement, facts: AttemptFacts): void {
    const { delivery } = work
    const { reply } = facts
    const level = settlement.t === 'dead' ? 'warn' : 'info'
    this.#world.observer.log(level, settlement.t === 'cancelled' ? 'delivery.cancelled' : 'delivery.attempted', {
      deliveryId: delivery.id,
      subscriptionId: delivery.subscriptionId,
      tenant: delivery.tenant,
      eventId: delivery.eventId,
      eventType: delivery.eventType,
      attempt: facts.attempt,
      outcome: facts.outcome?.t,
      status: reply?.t === 'response' ? reply.status : undefined,
      errorClass: reply?.t === 'failure' ? reply.class : undefined,
      error: reply?.t === 'failure' ? reply.detail : settlement.t === 'cancelled' ? settlement.reason : undefined,
      durationMs: reply === null ? undefined : Math.round(reply.durationMs),
      settlement: settlement.t,
      dueMs: settlement.t === 'scheduled' ? settlement.dueMs : undefined,
      reason: settlement.t === 'dead' ? settlement.reason : undefined,
      lane: this.partition,
    })
    this.#world.observer.count('attempts', 1, { outcome: facts.outcome?.t ?? 'none', settlement: settlement.t })
  }

  #reject(index: number, record: InRecord, reason: string): void {
    const at = { topic: index === 0 ? this.#world.topics.deliveries : (this.#world.topics.tiers[index - 1] as string), partition: this.partition }
    const parts = rejectedRecord(record, at, { code: 'delivery.unreadable', reason })
    this.#pending.move({ topic: this.#world.topics.rejected, partition: this.partition, ...parts })
    this.#trackers[index]?.done(record.offset)
    this.#pending.settled()
    this.counts.rejected++
    this.#world.observer.log('error', 'delivery.unreadable', { topic: at.topic, partition: at.partition, offset: record.offset, reason })
  }

  /** The work leaves memory; its source is done with the next commit (`parked` sources by their line's state). */
  #release(work: Work, beforeReady: boolean): void {
    if (work.source === 'deliveries') this.#trackers[0]?.done(work.offset)
    else if (work.source === 'tier') this.#trackers[work.tier + 1]?.done(work.offset)
    this.#pending.settled()
    if (work.source !== 'parked') this.#flow.removed(work.source === 'deliveries' ? 0 : work.tier + 1, work.bytes)
    else this.#flow.removed(null, work.bytes)
    if (!beforeReady) this.#left(work.delivery.subscriptionId)
  }

  #left(subscriptionId: string): void {
    const waiting = (this.#waiting.get(subscriptionId) ?? 0) - 1
    if (waiting > 0) this.#waiting.set(subscriptionId, waiting)
    else this.#waiting.delete(subscriptionId)
  }

  // ---- LinesHost -----------------------------------------------------------------------------------------------

  offer(work: Work): void {
    this.#world.executor.offer(work)
  }

  park(line: Line<Work>, work: Work): void {
    this.#pending.park(toParked(this.#world.topics.parked, this.partition, line.key, work))
    this.#release(work, false)
  }

  writeState(line: Line<Work>, state: LineState | null): void {
    this.#pending.line(line.key, state)
  }

  deliveriesNext(): number {
    return (this.#trackers[0] as OffsetTracker).next
  }

  parkedEnd(): number {
    return this.#parkedEnd
  }

  runs(subscriptionId: string): boolean {
    const subscription = this.#world.subscription(subscriptionId)
    // A deleted subscription's works must come out to be cancelled.
    return subscription === undefined || subscription.status === 'active'
  }

  lineOf(record: InRecord): string | null {
    return record.headers[lineHeader]?.toString() ?? null
  }

  fromParked(record: InRecord, line: Line<Work>): Work | null {
    const decoded = decodeDelivery(record)
    if (!decoded.ok) {
      this.#world.observer.log('error', 'delivery.unreadable', { topic: this.#world.topics.parked, partition: this.partition, offset: record.offset, reason: decoded.reason })
      const parts = rejectedRecord(record, { topic: this.#world.topics.parked, partition: this.partition }, { code: 'delivery.unreadable', reason: decoded.reason })
      this.#pending.move({ topic: this.#world.topics.rejected, partition: this.partition, ...parts })
      return null
    }
    const work: Work = {
      delivery: decoded.value,
      record,
      source: 'parked',
      tier: -1,
      offset: record.offset,
      bytes: recordBytes(record),
      owner: this,
      readyAtMs: this.#world.clock.now(),
      line,
    }
    this.#flow.added(null, work.bytes)
    this.#waiting.set(line.subscriptionId, (this.#waiting.get(line.subscriptionId) ?? 0) + 1)
    return work
  }

  nowMs(): number {
    return Math.floor(this.#world.clock.now())
  }

  lost(line: Line<Work>, records: number): void {
    this.#world.observer.log('error', 'parked.lost', { line: line.key, records, lane: this.partition, remedy: 'raise retention of the parked topic' })
    this.#world.observer.count('parked_lost', records)
  }

  // ---- commit --------------------------------------------------------------------------------------------------

  get dirty(): boolean {
    return !this.#pending.empty || this.#trackers.some((tracker, index) => tracker.version !== this.#committed[index])
  }

  get pendingMoves(): number {
    return this.#pending.moves
  }

  get pendingSettled(): number {
    return this.#pending.settledCount
  }

  /** One synchronous snapshot of everything settled since the last one; null when nothing changed. */
  snapshot(): LaneSnapshot | null {
    if (!this.dirty) return null
    const offsets = this.#movedOffsets()
    const taken = this.#pending.take(this.#filter.advance((this.#trackers[0] as OffsetTracker).base))
    this.#parkedUnderWay += taken.parked
    return { ...taken, offsets, takenAtMs: this.#world.clock.now() }
  }

  committed(snapshot: LaneSnapshot, appended: readonly Appended[]): void {
    this.#parkedUnderWay -= snapshot.parked
    for (const part of appended) {
      if (part.topic === this.#world.topics.parked) this.#parkedEnd = Math.max(this.#parkedEnd, part.firstOffset + part.count)
    }
    this.#afterIntake()
  }

  #movedOffsets(): GroupOffset[] {
    const moved: GroupOffset[] = []
    for (const [index, tracker] of this.#trackers.entries()) {
      if (tracker.version === this.#committed[index]) continue
      this.#committed[index] = tracker.version
      const topic = index === 0 ? this.#world.topics.deliveries : (this.#world.topics.tiers[index - 1] as string)
      moved.push({ topic, partition: this.partition, offset: tracker.base, metadata: tracker.metadata() })
    }
    return moved
  }

  // ---- life ----------------------------------------------------------------------------------------------------

  /** A subscription was changed or is gone: what waited for it may start, or must come out. */
  subscriptionChanged(id: string): void {
    if (this.#closed) return
    for (const line of this.#lines) if (line.subscriptionId === id) this.#lines.pump(line)
    this.#afterIntake()
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  get lineCount(): number {
    return this.#lines.size
  }

  tierHeld(index: number): { held: number; lowestDueMs: number | null } {
    const tier = this.#tiers[index]
    return { held: tier?.size ?? 0, lowestDueMs: tier?.lowestDueMs() ?? null }
  }

  get flow(): LaneFlow {
    return this.#flow
  }

  position(index: number): number {
    return (this.#trackers[index] as OffsetTracker).next
  }

  spans(): number[] {
    return this.#trackers.map((tracker) => tracker.span)
  }

  close(): void {
    this.#closed = true
    this.#world.executor.withdraw(this)
    this.#flow.close()
  }

  /** A waiting record pins a watermark whose span nears its bound: ordered lines give up what they hold in memory. */
  #relieve(index: number): void {
    if (index !== 0) return
    for (const line of [...this.#lines]) this.#lines.relieve(line)
  }

  #afterIntake(): void {
    this.#flow.update(this.#trackers)
    this.#touched()
  }
}

const interruptedPauseMs = 200
