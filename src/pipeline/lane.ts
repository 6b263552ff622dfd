import type { FailingMark } from '../core/lane-state.ts'
import { type Line, overflowKeyOf } from '../core/line.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { Outcome, Reply } from '../core/outcome.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Appended } from '../ports.ts'
import type { Bypass } from './bypass.ts'
import { FailingMarks } from './failing-marks.ts'
import type { LaneFlow } from './lane-flow.ts'
import { LaneGate } from './lane-gate.ts'
import { LaneIntake } from './lane-intake.ts'
import { LaneLineHost } from './lane-line-host.ts'
import type { AttemptFacts } from './lane-records.ts'
import { Relief } from './lane-relief.ts'
import { type Settled, Settling, settledBy } from './lane-settling.ts'
import { LaneTiers } from './lane-tiers.ts'
import { LaneWorks } from './lane-works.ts'
import type { LaneStart, LaneWorld } from './lane-world.ts'
import { type LaneSnapshot, Ledger } from './ledger.ts'
import { Lines } from './lines.ts'
import { OrphanWatch } from './orphan-watch.ts'
import { Soon } from './soon.ts'
import type { Work, WorkOwner } from './work.ts'

/**
 * One lane: partition p of every internal topic, owned by this process in this epoch. Synchronous throughout; the
 * runner around it fetches, commits and asks it again.
 */
export class Lane implements WorkOwner {
  readonly partition: number
  readonly epoch: number
  readonly flow: LaneFlow
  readonly #world: LaneWorld
  readonly ledger: Ledger
  readonly #lines: Lines
  readonly #gate: LaneGate
  readonly #failing: FailingMarks
  readonly #settling: Settling
  readonly #relief: Relief
  readonly #works: LaneWorks
  readonly #tiers: LaneTiers
  readonly #intake: LaneIntake
  readonly #touched: () => void
  readonly #inFlight = new Set<Work>()
  readonly #orphans: OrphanWatch
  #closed = false
  readonly #soon: Soon

  /** `touched`: something may have to be committed, promoted or read now. */
  constructor(world: LaneWorld, start: LaneStart, flow: LaneFlow, touched: () => void) {
    this.partition = start.partition
    this.epoch = start.epoch
    this.flow = flow
    this.#world = world
    this.#touched = touched
    this.#orphans = new OrphanWatch(world, start)
    this.#soon = new Soon(world.clock, () => this.#closed || this.#changed())
    this.ledger = new Ledger(world, start.partition, start)
    this.#gate = new LaneGate(world, this.ledger, start.circuits)
    this.#failing = new FailingMarks(world, this.ledger, start.failing)
    this.#settling = new Settling(world, this.ledger, start.partition)
    this.#relief = new Relief(world, this, flow, {
      relieved: () => this.#changed(),
      passesBy: () => this.bypass.size > 0,
      hop: (work) => {
        this.#works.left(work)
        this.#hop(work, 0)
      },
    })
    this.#works = new LaneWorks(world, this, this.ledger, flow, this.#relief.crowd)
    const { ledger } = this
    this.#tiers = new LaneTiers(world, {
      ripe: (work) => this.#intake.ripe(work),
      hop: (work, tier) => this.#hop(work, tier),
    })
    const parts = { ledger, flow, gate: this.#gate, works: this.#works, tiers: this.#tiers, settling: this.#settling }
    this.#intake = new LaneIntake(world, {
      ...parts,
      lines: () => this.#lines,
      cancel: (work, reason) => this.#cancel(work, reason),
      changed: () => this.#changed(),
    })
    const host = new LaneLineHost(world, start.partition, { ...parts, bypass: this.bypass })
    this.#lines = new Lines(host, world.lines, start.lines)
  }

  /** A batch of `deliveries` (index 0) or of tier `index − 1`. */
  onBatch(index: number, batch: FetchedBatch): void {
    if (this.#closed) return
    this.#intake.onBatch(index, batch)
    this.#orphans.look(this.ledger.trackers, this.#lines)
    this.#changed()
  }

  /** What was passed by in `deliveries`, read again. */
  onBypassed(batch: FetchedBatch): void {
    if (this.#closed) return
    this.#intake.onBypassed(batch)
    this.#changed()
  }

  /** A batch of `parked`, read at `from` for the lines that drain. */
  onParked(from: number, batch: FetchedBatch): void {
    if (this.#closed) return
    this.ledger.parkedRead(batch.nextOffset)
    this.#lines.onParked(from, batch, this.ledger.parkedSettled ? this.ledger.parkedEnd : null)
    this.#changed()
  }

  /** Offset from which `parked` is to be read now; null: not needed. */
  parkedWanted(): number | null {
    return this.#closed ? null : this.#lines.wanted()
  }

  /** Promotes what is due. Returns when to be called again (epoch ms), null when nothing is held. */
  tick(): number | null {
    if (this.#closed) return null
    const next = this.#tiers.tick()
    this.#changed()
    return next
  }

  /** On to another tier with the same attempt count and due time. */
  #hop(work: Work, tier: number): void {
    this.#settling.hop(work, tier)
    this.#works.released(work)
  }

  begin(work: Work): 'go' | 'dropped' {
    if (this.#closed) return 'dropped'
    const subscription = this.#world.subscription(work.delivery.subscriptionId)
    const verdict = this.#gate.verdict(work)
    if (subscription === undefined) this.#cancel(work, 'subscription deleted')
    else if (verdict !== null) {
      const settlement = settledBy(verdict)
      this.#apply(work, settlement, this.#settling.unattempted(work, settlement.t === 'dead' ? 0 : 1))
    } else if (this.#gate.drops(subscription)) this.#cancel(work, 'subscription disabled')
    else if (this.#gate.startable(subscription)) {
      this.#gate.started(subscription)
      this.#inFlight.add(work)
      return 'go'
    } else if (work.line === null) this.#lines.overflow(overflowKeyOf(subscription.id), work)
    else {
      // It may be for hours: in memory it would hold back the lane's watermark, and with it everybody.
      this.#lines.putBack(work)
      this.#lines.relieve(work.line)
    }
    // Settled or parked instead of started: that has to be committed too, and makes room.
    this.#soon.ask()
    return 'dropped'
  }

  /** Is it open, the lane still ours, and nothing ordered since? Asked again by whoever had to wait between `begin` and the POST. */
  holds(work: Work): boolean {
    return !this.#closed && this.#inFlight.has(work) && !this.#gate.forbids(work)
  }

  /** What a POST came to. Results of a lost lane are dropped and counted: a successor repeats them. */
  finish(work: Work, facts: AttemptFacts & { readonly reply: Reply; readonly outcome: Outcome }): void {
    const ours = !this.#closed && this.#inFlight.delete(work)
    this.#gate.ended(work, facts.url, facts.reply, ours)
    if (!ours) {
      this.#world.observer.count('stale_results')
      return
    }
    const subscription = this.#world.subscription(work.delivery.subscriptionId)
    const settlement = this.#settling.decide(work, facts.attempt, facts.outcome, subscription)
    if (settlement.t === 'released') this.#again(work)
    else {
      // First: applying it may start the next of its line, which a disabled subscription must not.
      if (subscription !== undefined) this.#learn(subscription, facts.outcome, facts.reply)
      this.#apply(work, settlement, facts)
    }
    this.#changed()
  }

  #learn(subscription: Subscription, outcome: Outcome, reply: Reply): void {
    if (outcome.t === 'gone') this.#world.gone(subscription)
    else this.#failing.ended(subscription, outcome, reply)
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

  #cancel(work: Work, reason: string): void {
    this.#apply(work, { t: 'cancelled', reason }, this.#settling.unattempted(work, 1))
  }

  /** What follows from a settlement: the move, if any, the attempt, the source and the line's state, in one step. */
  #apply(work: Work, settlement: Settled, facts: AttemptFacts): void {
    this.#settling.write(work, settlement, facts)
    this.#works.settled(work)
    if (work.line !== null) this.#lines.settled(work, this.#settling.lineEnd(work, settlement))
  }

  committed(snapshot: LaneSnapshot, appended: readonly Appended[]): void {
    this.ledger.committed(snapshot, appended)
    this.#changed()
  }

  /** Something lines may wait for has changed; see `line-wakes.ts`. */
  wake(change: (lines: Lines, gate: LaneGate) => void): void {
    if (this.#closed) return
    change(this.#lines, this.#gate)
    this.#changed()
  }

  get bypass(): Bypass {
    return this.#intake.bypass
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  get lineCount(): number {
    return this.#lines.size
  }

  /** Those that are not simply open, and those with something in memory. */
  get lines(): Iterable<Line<Work>> {
    return this.#lines
  }

  /** Subscriptions that fail without a success in between. */
  get failing(): Iterable<FailingMark> {
    return this.#failing
  }

  get tiers(): Pick<LaneTiers, 'held' | 'promoted'> {
    return this.#tiers
  }

  /** Where reading of a source goes on. */
  position(index: number): number {
    return (this.ledger.trackers[index] as OffsetTracker).next
  }

  close(): void {
    this.#closed = true
    this.#relief.close()
    this.#world.executor.withdraw(this)
    this.#intake.close()
    this.flow.close()
  }

  #changed(): void {
    this.flow.update(this.ledger.trackers, this.ledger.unwrittenBytes)
    this.#relief.watch(this.#lines, this.ledger.deliveries)
    this.#touched()
  }
}

const interruptedPauseMs = 200
