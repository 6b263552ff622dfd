import { lineHeader } from '../core/delivery.ts'
import { lineKeyOf, overflowKeyOf } from '../core/line.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import type { FetchedBatch, InRecord } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import { Bypass } from './bypass.ts'
import type { LaneFlow } from './lane-flow.ts'
import type { LaneGate } from './lane-gate.ts'
import type { Settling } from './lane-settling.ts'
import type { LaneTiers } from './lane-tiers.ts'
import type { LaneWorks } from './lane-works.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Ledger } from './ledger.ts'
import type { Lines } from './lines.ts'
import { type Stranger, Strangers } from './strangers.ts'
import type { Work } from './work.ts'

export interface IntakeParts {
  readonly ledger: Ledger
  readonly flow: LaneFlow
  readonly gate: LaneGate
  readonly works: LaneWorks
  readonly tiers: LaneTiers
  readonly settling: Settling
  lines(): Lines
  cancel(work: Work, reason: string): void
  /** Strangers have become known: works have come in outside any batch. */
  changed(): void
}

/** How what a lane reads becomes works, and where a work goes that is ready: to its line, to `parked`, to the executor. */
export class LaneIntake {
  readonly bypass: Bypass
  readonly #world: LaneWorld
  readonly #parts: IntakeParts
  readonly #strangers: Strangers

  constructor(world: LaneWorld, parts: IntakeParts) {
    this.#world = world
    this.#parts = parts
    this.#strangers = new Strangers(
      world.clock,
      () => world.freshen(),
      (strangers) => this.#known(strangers),
    )
    const { ledger, flow, works } = parts
    const host = { arrive: (record: InRecord) => this.#take(0, record, true, true) }
    this.bypass = new Bypass({ ledger, flow, crowd: works.crowd, behind: world.crowd.behind, host })
  }

  /** A batch of `deliveries` (index 0) or of tier `index − 1`. */
  onBatch(index: number, batch: FetchedBatch): void {
    const { ledger, flow } = this.#parts
    const tracker = ledger.trackers[index] as OffsetTracker
    for (const record of batch.records) {
      if (!tracker.admits(record.offset)) {
        flow.truncated(index)
        return
      }
      const known = record.offset < tracker.next
      const fresh = tracker.see(record.offset)
      if (known || (index === 0 && this.bypass.passes(record, fresh, batch.highWatermark))) continue
      this.#take(index, record, fresh, false)
    }
    tracker.pass(batch.nextOffset)
    // The rest is only markers and gaps, but the consumer would not come back for them by itself.
    if (tracker.next < batch.nextOffset) flow.truncated(index)
    if (index === 0) this.#parts.lines().passed()
  }

  /** What was passed by in `deliveries`, read again. */
  onBypassed(batch: FetchedBatch): void {
    this.bypass.onBatch(batch)
    this.#parts.lines().passed()
  }

  /** Back from a tier and due. */
  ripe(work: Work): void {
    const { subscriptionId } = work.delivery
    const lineKey = work.record.headers[lineHeader]?.toString() ?? null
    work.readyAtMs = this.#world.clock.now()
    const subscription = this.#world.subscription(subscriptionId)
    if (subscription === undefined || this.#strangers.has(subscriptionId)) this.#strangers.hold({ work, lineKey })
    else this.#back(work, lineKey, subscription)
  }

  #back(work: Work, lineKey: string | null, subscription: Subscription): void {
    const { works, gate } = this.#parts
    const lines = this.#parts.lines()
    works.entered(work)
    if (lineKey !== null && lines.ripe(lineKey, work)) return
    if (!gate.startable(subscription)) lines.overflow(overflowKeyOf(subscription.id), work)
    else this.#world.executor.offer(work)
  }

  close(): void {
    this.#strangers.close()
  }

  /** `fresh` false: a predecessor finished it, but its origin still counts. `again`: it was passed by before. */
  #take(index: number, record: InRecord, fresh: boolean, again: boolean): void {
    const { works, ledger, settling, tiers } = this.#parts
    const work = works.read(index === 0 ? 'deliveries' : 'tier', index - 1, record, null)
    if (typeof work === 'string') {
      if (fresh) {
        settling.reject(ledger.sourceName(index), record, work)
        ledger.done(index, record.offset)
      }
      return
    }
    const { origin, subscriptionId } = work.delivery
    if (index === 0 && !again && ledger.repeats(record.offset, origin, subscriptionId)) {
      if (fresh) ledger.repeated(record.offset)
      return
    }
    if (!fresh) return
    works.admitted(work)
    if (index === 0) this.#arrive(work)
    else {
      const line = work.record.headers[lineHeader]
      if (line !== undefined) this.#parts.lines().waits(line.toString())
      tiers.push(index - 1, work, record.timestampMs)
    }
  }

  #arrive(work: Work): void {
    const { subscriptionId } = work.delivery
    const subscription = this.#world.subscription(subscriptionId)
    if (subscription === undefined || this.#strangers.has(subscriptionId)) this.#strangers.hold({ work, lineKey: null })
    else this.#enter(work, subscription)
  }

  #enter(work: Work, subscription: Subscription): void {
    const { works, gate } = this.#parts
    const lines = this.#parts.lines()
    works.entered(work)
    const crowded = works.crowd.diverts(subscription.id)
    const key = lineKeyOf(subscription, work.delivery)
    if (key !== null) lines.arrive(key, work, crowded)
    else if (crowded || !gate.startable(subscription)) lines.overflow(overflowKeyOf(subscription.id), work)
    else this.#world.executor.offer(work)
  }

  /**
   * The table is up to date now: who is still unknown is deleted. Others of the same subscription may wait for the next
   * look; they came later, so these must not be sent to wait behind them.
   */
  #known(strangers: readonly Stranger[]): void {
    for (const { work, lineKey } of strangers) {
      const subscription = this.#world.subscription(work.delivery.subscriptionId)
      if (subscription === undefined) {
        // A line's head goes through its line, so that the line goes on.
        if (lineKey === null || !this.#parts.lines().ripe(lineKey, work)) {
          this.#parts.cancel(work, 'subscription deleted')
        }
      } else if (work.source === 'deliveries') this.#enter(work, subscription)
      else this.#back(work, lineKey, subscription)
    }
    this.#parts.changed()
  }
}
