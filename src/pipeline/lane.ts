import type { ClockOffset } from '../core/clock-offset.ts'
import type { DeadCredit } from '../core/dead-credit.ts'
import { decodeDelivery, lineHeader } from '../core/delivery.ts'
import type { Ladder } from '../core/ladder.ts'
import { type CircuitMark, type LineState, laneStateKey } from '../core/lane-state.ts'
import { type Line, lineKeyOf, overflowKeyOf } from '../core/line.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { Orders, Verdict } from '../core/orders.ts'
import type { OriginFilter } from '../core/origin-filter.ts'
import type { Outcome, Reply } from '../core/outcome.ts'
import { RateLimit } from '../core/rate-limit.ts'
import { type FetchedBatch, type InRecord, ownedRecord, recordBytes } from '../core/record.ts'
import { rejectedRecord } from '../core/rejected.ts'
import { policyFor, type RetryPolicy } from '../core/retry-policy.ts'
import { type Settlement, settle } from '../core/settle.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Appended, Clock, Observer } from '../ports.ts'
import { type Circuits, originKey, subscriptionKey } from './circuits.ts'
import { Crowd, type CrowdLimits } from './crowd.ts'
import type { Executor } from './executor.ts'
import type { LaneFlow } from './lane-flow.ts'
import { type AttemptFacts, toAttempt, toDead, toParked, toTier } from './lane-records.ts'
import { reportSettlement } from './lane-report.ts'
import type { LaneTopics } from './lane-topics.ts'
import { type LaneSnapshot, Ledger } from './ledger.ts'
import { Lines, type LinesHost, type LinesOptions } from './lines.ts'
import { type Stranger, Strangers } from './strangers.ts'
import { TierQueue } from './tier-queue.ts'
import type { Work, WorkOwner } from './work.ts'

/** What every lane of a process shares. */
export interface LaneWorld {
  readonly clock: Clock
  readonly observer: Observer
  readonly executor: Executor
  readonly topics: LaneTopics
  readonly rejectedPartitions: number
  readonly ladder: Ladder
  readonly policy: RetryPolicy
  readonly clockOffset: ClockOffset
  readonly lines: LinesOptions
  readonly crowd: CrowdLimits
  readonly circuits: Circuits
  readonly deadCredit: DeadCredit
  readonly orders: Orders
  /** Lanes in all: a tier's rate is divided among them. */
  readonly lanes: number
  /** The origin of a URL, for caps and circuits. */
  originOf(url: string): string
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
  readonly circuits: readonly CircuitMark[]
  readonly filter: OriginFilter
  readonly parkedEnd: number
  /** Where each source ended then. */
  readonly ends: readonly number[]
}

/**
 * One lane: partition p of every internal topic, owned by this process in this epoch. Synchronous throughout; the
 * runner around it fetches, commits and asks it again.
 */
export class Lane implements WorkOwner, LinesHost {
  readonly partition: number
  readonly epoch: number
  readonly flow: LaneFlow
  readonly #world: LaneWorld
  readonly #ledger: Ledger
  readonly #lines: Lines
  readonly #tiers: TierQueue[]
  readonly #limits: RateLimit[] = []
  readonly #strangers: Strangers
  readonly #touched: () => void
  /** Works in memory by subscription, tiers' not yet ripe left out. */
  readonly #crowd: Crowd
  #pressure: (() => void) | null = null
  readonly #inFlight = new Set<Work>()
  /** Ends of the sources at the gain, until all tiers have been read that far. */
  #ends: readonly number[] | null
  /** Circuits this lane has written down. */
  readonly #marked: Set<string>
  #closed = false
  readonly counts = { repeats: 0, rejected: 0, promoted: new Map<string, number>() }

  /** `touched`: something may have to be committed, promoted or read now. */
  constructor(world: LaneWorld, start: LaneStart, flow: LaneFlow, touched: () => void) {
    this.partition = start.partition
    this.epoch = start.epoch
    this.flow = flow
    this.#world = world
    this.#touched = touched
    this.#ends = start.ends
    this.#ledger = new Ledger(world.topics, start.partition, start)
    this.#crowd = new Crowd(world.crowd)
    this.#marked = new Set(start.circuits.map(({ circuit }) => circuit))
    for (const mark of start.circuits) world.circuits.restore(mark)
    this.#tiers = world.ladder.tiers.map((tier) => new TierQueue(tier.delayMs))
    this.#strangers = new Strangers(
      world.clock,
      () => world.freshen(),
      (strangers) => this.#known(strangers),
    )
    this.#lines = new Lines(this, world.lines, start.lines)
  }

  // ---- what comes in -------------------------------------------------------------------------------------------

  /** A batch of `deliveries` (index 0) or of tier `index − 1`. */
  onBatch(index: number, batch: FetchedBatch): void {
    if (this.#closed) return
    const tracker = this.#ledger.trackers[index] as OffsetTracker
    for (const record of batch.records) {
      if (!tracker.admits(record.offset)) {
        this.flow.truncated(index)
        this.#changed()
        return
      }
      const known = record.offset < tracker.next
      const fresh = tracker.see(record.offset)
      if (!known) this.#take(index, record, fresh)
    }
    tracker.pass(batch.nextOffset)
    this.#findOrphans()
    this.#changed()
  }

  /** Lines whose head retention has taken, once after each gain: every head there was has been read by now. */
  #findOrphans(): void {
    const ends = this.#ends
    if (ends === null) return
    for (const [index, tracker] of this.#ledger.trackers.entries())
      if (index > 0 && tracker.next < (ends[index] as number)) return
    this.#ends = null
    for (const line of this.#lines.orphans()) {
      this.#world.observer.log('error', 'line.head_lost', {
        line: line.key,
        lane: this.partition,
        remedy: 'raise the retention of the retry topics',
      })
      this.#world.observer.count('heads_lost')
    }
  }

  /** `fresh` false: a predecessor finished it, but its origin still counts. */
  #take(index: number, record: InRecord, fresh: boolean): void {
    const work = this.#read(index === 0 ? 'deliveries' : 'tier', index - 1, record, null)
    if (typeof work === 'string') {
      if (fresh) {
        this.#reject(this.#ledger.sourceName(index), record, work)
        this.#ledger.done(index, record.offset)
      }
      return
    }
    if (index === 0 && this.#ledger.repeats(record, work)) {
      if (!fresh) return
      this.counts.repeats++
      this.#world.observer.count('repeats_dropped')
      this.#ledger.done(0, record.offset)
      return
    }
    if (!fresh) return
    this.flow.added(index, work.bytes)
    if (index === 0) this.#arrive(work)
    else {
      const line = work.record.headers[lineHeader]
      if (line !== undefined) this.#lines.waits(line.toString())
      this.#tiers[index - 1]?.push(work, record.timestampMs)
    }
  }

  #read(source: Work['source'], tier: number, record: InRecord, line: Line<Work> | null): Work | string {
    // Deliveries pass through within a moment; what comes from a tier or is parked waits for hours.
    const kept = source === 'deliveries' ? record : ownedRecord(record)
    const decoded = decodeDelivery(kept)
    if (!decoded.ok) return decoded.reason
    return {
      delivery: decoded.value,
      record: kept,
      source,
      tier,
      offset: record.offset,
      bytes: recordBytes(record),
      owner: this,
      readyAtMs: this.#world.clock.now(),
      line,
    }
  }

  #arrive(work: Work): void {
    const { subscriptionId } = work.delivery
    const subscription = this.#world.subscription(subscriptionId)
    if (subscription === undefined || this.#strangers.has(subscriptionId)) {
      this.#strangers.hold({ work, lineKey: null })
      return
    }
    this.#entered(subscriptionId)
    const crowded = this.#crowd.diverts(subscriptionId)
    const key = lineKeyOf(subscription, work.delivery)
    if (key !== null) this.#lines.arrive(key, work, crowded)
    else if (crowded || !this.#startable(subscription)) this.#lines.overflow(overflowKeyOf(subscriptionId), work)
    else this.#world.executor.offer(work)
  }

  /** Back from a tier and due. */
  #ripe(work: Work): void {
    const { subscriptionId } = work.delivery
    const lineKey = work.record.headers[lineHeader]?.toString() ?? null
    work.readyAtMs = this.#world.clock.now()
    const subscription = this.#world.subscription(subscriptionId)
    if (subscription === undefined || this.#strangers.has(subscriptionId)) {
      this.#strangers.hold({ work, lineKey })
      return
    }
    this.#entered(subscriptionId)
    if (lineKey !== null && this.#lines.ripe(lineKey, work)) return
    if (!this.#startable(subscription)) this.#lines.overflow(overflowKeyOf(subscriptionId), work)
    else this.#world.executor.offer(work)
  }

  /** The table is up to date now: who is still unknown is deleted. */
  #known(strangers: readonly Stranger[]): void {
    for (const { work, lineKey } of strangers) {
      if (this.#world.subscription(work.delivery.subscriptionId) === undefined) {
        // A line's head goes through its line, so that the line goes on.
        if (lineKey === null || !this.#lines.ripe(lineKey, work)) this.#cancel(work, 'subscription deleted')
      } else if (work.source === 'deliveries') this.#arrive(work)
      else this.#ripe(work)
    }
    this.#changed()
  }

  /** A batch of `parked`, read at `from` for the lines that drain. */
  onParked(from: number, batch: FetchedBatch): void {
    if (this.#closed) return
    this.#lines.onParked(from, batch, this.#ledger.parkedSettled ? this.#ledger.parkedEnd : null)
    this.#changed()
  }

  /** Offset from which `parked` is to be read now; null: not needed. */
  parkedWanted(): number | null {
    return this.#closed ? null : this.#lines.wanted()
  }

  // ---- time ----------------------------------------------------------------------------------------------------

  /** Promotes what is due. Returns when to be called again (epoch ms), null when nothing is held. */
  tick(): number | null {
    if (this.#closed) return null
    const { clock, clockOffset } = this.#world
    const now = clock.now()
    const broker = clockOffset.brokerAtLeastMs(now)
    let next: number | null = null
    for (const [i, tier] of this.#tiers.entries()) {
      let atMs: number | null = null
      while (atMs === null && tier.ready(broker, now)) {
        atMs = this.#gated(i, now)
        if (atMs === null) this.#ripen(i, tier.takeRipe(broker), tier.takeDue(now), now)
      }
      atMs ??= tier.nextMs(broker - now)
      if (atMs !== null && (next === null || atMs < next)) next = atMs
    }
    this.#changed()
    return next
  }

  #ripen(tier: number, ripe: Work | null, due: Work | null, now: number): void {
    if (due !== null) this.#promote(tier, due)
    if (ripe === null) return
    const leftMs = (ripe.delivery.dueMs ?? 0) - now
    const hop = this.#world.ladder.pick(leftMs)
    if (leftMs <= 0) this.#promote(tier, ripe)
    else if (hop === null) this.#tiers[tier]?.wait(ripe)
    else this.#hop(ripe, hop)
  }

  /** An operator has paused or throttled the tier: when to look again (epoch ms); null: one may go now. */
  #gated(tier: number, now: number): number | null {
    const { orders, ladder, lanes } = this.#world
    const rate = orders.tierRate(ladder.tiers[tier]?.name ?? '', now)
    if (rate === null) return null
    this.#limits[tier] ??= new RateLimit(now)
    const limit = this.#limits[tier]
    return limit.take(rate / lanes, now) ? null : now + limit.waitMs(rate / lanes)
  }

  #promote(tier: number, work: Work): void {
    const name = this.#world.ladder.tiers[tier]?.name ?? ''
    this.counts.promoted.set(name, (this.counts.promoted.get(name) ?? 0) + 1)
    this.#world.observer.time('tier_lateness', this.#world.clock.now() - (work.delivery.dueMs ?? 0), { tier: name })
    this.#ripe(work)
  }

  /** Not due for longer than another tier's delay: on to that tier with the same attempt count and due time. */
  #hop(work: Work, tier: number): void {
    const { attempts, dueMs, lastError } = work.delivery
    const lineKey = work.record.headers[lineHeader] ?? null
    this.#ledger.move(
      toTier(this.#world.topics.tiers[tier] as string, this.partition, work, lineKey, {
        attempts,
        dueMs: dueMs ?? 0,
        error: lastError,
      }),
    )
    this.#release(work)
  }

  // ---- the executor's side -------------------------------------------------------------------------------------

  begin(work: Work): 'go' | 'dropped' {
    if (this.#closed) return 'dropped'
    const subscription = this.#world.subscription(work.delivery.subscriptionId)
    const verdict = this.#world.orders.verdict(work.delivery, work.line?.key ?? null, this.#world.clock.now())
    if (subscription === undefined) this.#cancel(work, 'subscription deleted')
    else if (verdict !== null) this.#obey(work, verdict)
    else if (this.#startable(subscription)) {
      this.#world.circuits.started(subscription.id, this.#world.originOf(subscription.url))
      this.#inFlight.add(work)
      return 'go'
    } else if (work.line === null) this.#lines.overflow(overflowKeyOf(subscription.id), work)
    else this.#lines.putBack(work)
    return 'dropped'
  }

  /** What a POST came to. Results of a lost lane are dropped and counted: a successor repeats them. */
  finish(work: Work, facts: AttemptFacts & { readonly reply: Reply; readonly outcome: Outcome }): void {
    const { subscriptionId } = work.delivery
    // What it says of the endpoint holds, whoever owns the lane now.
    const changes = this.#world.circuits.ended(subscriptionId, this.#world.originOf(facts.url), facts.reply)
    if (this.#closed || !this.#inFlight.delete(work)) {
      this.#world.observer.count('stale_results')
      return
    }
    for (const { circuit, mark } of changes) this.#mark(circuit, mark)
    const subscription = this.#world.subscription(subscriptionId)
    const settlement = this.#decide(facts, subscription, subscriptionId)
    if (settlement.t === 'released') this.#again(work)
    else {
      this.#apply(work, settlement, facts)
      if (facts.outcome.t === 'gone' && subscription !== undefined) this.#world.gone(subscription)
    }
    this.#changed()
  }

  #decide(
    facts: AttemptFacts & { readonly outcome: Outcome },
    subscription: Subscription | undefined,
    subscriptionId: string,
  ): Settlement {
    const { clock, ladder, deadCredit } = this.#world
    const policy = policyFor(this.#world.policy, subscription?.retry)
    const input = {
      outcome: facts.outcome,
      attempt: facts.attempt,
      policy,
      ladder,
      nowMs: clock.now(),
      random: clock.random(),
    }
    const settlement = settle(input)
    if (settlement.t === 'done') deadCredit.earn(subscriptionId)
    if (settlement.t !== 'dead' || settlement.reason !== 'exhausted') return settlement
    // An outage must not flood `dead`: without credit the delivery waits on, for as many attempts again at the most.
    if (facts.attempt >= 2 * policy.maxAttempts || deadCredit.spend(subscriptionId)) return settlement
    return settle({ ...input, policy: { ...policy, maxAttempts: Number.POSITIVE_INFINITY } })
  }

  #mark(circuit: string, mark: CircuitMark | null): void {
    if (mark === null && !this.#marked.delete(circuit)) return
    if (mark !== null) this.#marked.add(circuit)
    this.#ledger.state(mark === null ? `circuit:${circuit}` : laneStateKey(mark), mark)
  }

  /** Interrupted: nothing happened as far as the log is concerned. */
  #again(work: Work): void {
    const { line } = work
    work.readyAtMs = this.#world.clock.now()
    if (line !== null) this.#lines.putBack(work)
    this.#world.clock.after(interruptedPauseMs, () => {
      if (this.#closed) return
      if (line === null) this.#world.executor.offer(work)
      else this.#lines.pump(line)
    })
  }

  #obey(work: Work, verdict: Verdict): void {
    if (verdict.t === 'cancelled') this.#cancel(work, verdict.reason)
    else this.#apply(work, { t: 'dead', reason: 'operator', error: verdict.reason }, this.#unattempted(work, 0))
  }

  #cancel(work: Work, reason: string): void {
    this.#apply(work, { t: 'cancelled', reason }, this.#unattempted(work, 1))
  }

  /** Settled without a POST; `more`: counted as if it had been made. */
  #unattempted(work: Work, more: 0 | 1): AttemptFacts {
    const attempt = Math.max(1, work.delivery.attempts + more)
    return { attempt, startedAtMs: this.#world.clock.now(), url: '', reply: null, outcome: null }
  }

  /** Writes what follows from a settlement: the move, if any, the source, the line's state and the attempt, in one step. */
  #apply(work: Work, settlement: Exclude<Settlement, { t: 'released' }>, facts: AttemptFacts): void {
    const { topics, clock, observer } = this.#world
    const lineKey = work.line?.ordered === true ? Buffer.from(work.line.key) : null
    if (settlement.t === 'scheduled') {
      const change = { attempts: facts.attempt, dueMs: settlement.dueMs, error: settlement.error }
      this.#ledger.move(toTier(topics.tiers[settlement.tier] as string, this.partition, work, lineKey, change))
    } else if (settlement.t === 'dead') {
      const change = {
        attempts: facts.attempt,
        reason: settlement.reason,
        error: settlement.error,
        atMs: Math.floor(clock.now()),
      }
      this.#ledger.move(toDead(topics.dead, this.partition, work, lineKey, change))
    }
    this.#ledger.append(toAttempt(topics.attempts, this.partition, work, facts, settlement))
    reportSettlement(observer, this.partition, work, settlement, facts)
    this.#release(work)
    if (work.source === 'parked') this.#crowd.parked(work.delivery.subscriptionId, -1)
    this.#crowd.left(work.delivery.subscriptionId, true, clock.now())
    if (work.line !== null) this.#lines.settled(work, this.#lineEnd(work, settlement))
  }

  #lineEnd(work: Work, settlement: Settlement): 'final' | 'retry' | 'stop' {
    if (settlement.t === 'scheduled') return 'retry'
    // An operator who sends a delivery to the dead letters wants the line to go on.
    if (settlement.t !== 'dead' || settlement.reason === 'operator') return 'final'
    return this.#world.subscription(work.delivery.subscriptionId)?.onDead === 'block' ? 'stop' : 'final'
  }

  #reject(topic: string, record: InRecord, reason: string): void {
    const at = { topic, partition: this.partition }
    const parts = rejectedRecord(record, at, { code: 'delivery.unreadable', reason })
    const partition = this.partition % this.#world.rejectedPartitions
    this.#ledger.move({ topic: this.#world.topics.rejected, partition, ...parts })
    this.counts.rejected++
    this.#world.observer.log('error', 'delivery.unreadable', { ...at, offset: record.offset, reason })
  }

  /** The work leaves memory and its source is done with the next commit. */
  #release(work: Work): void {
    const index = work.source === 'parked' ? null : work.source === 'deliveries' ? 0 : work.tier + 1
    if (index === null) this.#ledger.doneParked()
    else this.#ledger.done(index, work.offset)
    this.flow.removed(index, work.bytes)
  }

  #entered(subscriptionId: string): void {
    this.#crowd.entered(subscriptionId, this.#world.clock.now())
  }

  // ---- LinesHost -----------------------------------------------------------------------------------------------

  offer(work: Work): void {
    this.#world.executor.offer(work)
  }

  park(line: Line<Work>, work: Work): void {
    this.#ledger.park(toParked(this.#world.topics.parked, this.partition, line.key, work))
    this.#release(work)
    this.#crowd.parked(work.delivery.subscriptionId, 1)
    this.#crowd.left(work.delivery.subscriptionId, false, this.#world.clock.now())
  }

  writeState(line: Line<Work>, state: LineState | null): void {
    this.#ledger.state(`line:${line.key}`, state)
  }

  deliveriesNext(): number {
    return this.#ledger.deliveries.next
  }

  parkedEnd(): number {
    return this.#ledger.parkedEnd
  }

  runs(line: Line<Work>): boolean {
    const subscription = this.#world.subscription(line.subscriptionId)
    // Works of a deleted subscription, or of a line an operator cancelled, must come out to be settled.
    if (subscription === undefined || this.#startable(subscription)) return true
    return this.#world.orders.lineVerdict(line.key, 0, this.#world.clock.now()) !== null
  }

  #startable(subscription: Subscription): boolean {
    const { circuits, clock, orders, originOf } = this.#world
    return (
      subscription.status === 'active' &&
      !orders.subscriptionPaused(subscription.id, clock.now()) &&
      circuits.allows(subscription.id, originOf(subscription.url))
    )
  }

  lineOf(record: InRecord): string | null {
    return record.headers[lineHeader]?.toString() ?? null
  }

  fromParked(record: InRecord, line: Line<Work>): Work | null {
    const work = this.#read('parked', -1, record, line)
    if (typeof work === 'string') {
      this.#reject(this.#world.topics.parked, record, work)
      return null
    }
    this.flow.added(null, work.bytes)
    this.#entered(line.subscriptionId)
    return work
  }

  nowMs(): number {
    return Math.floor(this.#world.clock.now())
  }

  lost(line: Line<Work>, records: number): void {
    this.#world.observer.log('error', 'parked.lost', {
      line: line.key,
      records,
      lane: this.partition,
      remedy: 'raise the retention of the parked topic',
    })
    this.#world.observer.count('parked_lost', records)
  }

  // ---- commit and life -----------------------------------------------------------------------------------------

  get dirty(): boolean {
    return this.#ledger.dirty
  }

  get pendingMoves(): number {
    return this.#ledger.pendingMoves
  }

  get pendingSettled(): number {
    return this.#ledger.pendingSettled
  }

  snapshot(): LaneSnapshot | null {
    return this.#ledger.snapshot()
  }

  committed(snapshot: LaneSnapshot, appended: readonly Appended[]): void {
    this.#ledger.committed(snapshot, appended)
    this.#changed()
  }

  /** A subscription was changed or is gone: what waited for it may start, or must come out. */
  subscriptionChanged(id: string): void {
    if (this.#closed) return
    for (const line of [...this.#lines]) if (line.subscriptionId === id) this.#lines.pump(line)
    this.#changed()
  }

  /** An operator's order for this target was given, changed or taken back. */
  ordered(kind: string, target: string): void {
    if (this.#closed) return
    if (kind === 'subscription') this.subscriptionChanged(target)
    else if (kind === 'line') this.#lineOrdered(target)
    else if (kind === 'delivery') {
      // A cancelled head sets its line free now; its record is settled when it is ripe.
      for (const line of [...this.#lines]) if (line.state?.head === target) this.#lines.release(line.key)
    }
    this.#changed()
  }

  /** Orders from before the line stood are about an earlier time. */
  #lineOrdered(key: string): void {
    const line = this.#lines.get(key)
    const releasedMs = this.#world.orders.lineReleasedMs(key)
    if (line?.state === undefined || line.state === null || releasedMs === null) return
    if (releasedMs >= line.state.sinceMs) this.#lines.release(key)
    this.#lines.pump(line)
  }

  /** Orders that came while nobody owned the lane. */
  obeyOrders(): void {
    for (const line of [...this.#lines]) this.#lineOrdered(line.key)
  }

  /** A circuit closed: all that waited for it goes on; or its time is over: one work is tried. */
  circuitChanged(circuit: string, closed: boolean): void {
    if (this.#closed) return
    if (closed) this.#mark(circuit, null)
    for (const line of [...this.#lines]) {
      if (!this.#concerns(circuit, line.subscriptionId)) continue
      this.#lines.pump(line)
      if (!closed && line.open.size > 0) break
    }
    this.#changed()
  }

  #concerns(circuit: string, subscriptionId: string): boolean {
    if (circuit === subscriptionKey(subscriptionId)) return true
    const subscription = this.#world.subscription(subscriptionId)
    return subscription !== undefined && circuit === originKey(this.#world.originOf(subscription.url))
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

  /** Where reading of a source goes on. */
  position(index: number): number {
    return (this.#ledger.trackers[index] as OffsetTracker).next
  }

  /** Admitted span per source. */
  spans(): number[] {
    return this.#ledger.trackers.map((tracker) => tracker.span)
  }

  close(): void {
    this.#closed = true
    this.#pressure?.()
    this.#world.executor.withdraw(this)
    this.#strangers.close()
    this.flow.close()
  }

  /**
   * The lane is full: what does not move gives up its place. Works not yet started come back from the executor; ordered
   * ones are parked behind their line's open one, unordered ones but for a few.
   */
  #relieve(): void {
    const now = this.#world.clock.now()
    for (const id of this.#crowd.divert(now)) {
      let kept = 0
      for (const work of this.#world.executor.withdraw(this, id)) {
        if (work.line !== null) this.#lines.putBack(work)
        else if (kept++ < this.#world.crowd.keep) this.#world.executor.offer(work)
        else this.#lines.overflow(overflowKeyOf(id), work)
      }
      for (const line of [...this.#lines]) {
        if (line.subscriptionId !== id) continue
        this.#lines.relieve(line)
        this.#lines.pump(line)
      }
    }
  }

  /** Full for a while, not just for a moment: then relief is due. */
  #watchPressure(): void {
    if (this.#pressure !== null || this.flow.runs(0)) return
    this.#pressure = this.#world.clock.after(pressureMs, () => {
      this.#pressure = null
      if (this.#closed || this.flow.runs(0)) return
      this.#relieve()
      this.#changed()
    })
  }

  #changed(): void {
    this.flow.update(this.#ledger.trackers)
    this.#watchPressure()
    this.#touched()
  }
}

const interruptedPauseMs = 200
const pressureMs = 250
