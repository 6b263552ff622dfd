import { type Line, overflowKeyOf } from '../core/line.ts'
import type { OffsetTracker } from '../core/offset-tracker.ts'
import { Crowd } from './crowd.ts'
import type { LaneFlow } from './lane-flow.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Lines } from './lines.ts'
import type { Work, WorkOwner } from './work.ts'

export interface ReliefHost {
  /** Something has left memory, or may start now. */
  relieved(): void
  /** What was passed by makes the span wide, and parking others would not narrow it. */
  passesBy(): boolean
  /** To the smallest tier, with its attempts and its due time: the head of an ordered line is never parked. */
  hop(work: Work): void
}

/** Makes room in a full lane: what does not move is parked. Knows who holds how much of the lane's memory. */
export class Relief {
  readonly crowd: Crowd
  readonly #world: LaneWorld
  readonly #owner: WorkOwner
  readonly #flow: LaneFlow
  readonly #host: ReliefHost
  #timer: (() => void) | null = null

  constructor(world: LaneWorld, owner: WorkOwner, flow: LaneFlow, host: ReliefHost) {
    this.#world = world
    this.#owner = owner
    this.#flow = flow
    this.#host = host
    this.crowd = new Crowd(world.crowd)
  }

  /** Full for a while, not just for a moment: then relief is due. `deliveries`: the tracker of that source. */
  watch(lines: Lines, deliveries: OffsetTracker): void {
    if (this.#timer !== null || !this.#pressed(deliveries)) return
    this.#timer = this.#world.clock.after(pressureMs, () => {
      this.#timer = null
      if (!this.#pressed(deliveries)) return
      if (!this.#flow.runs(0)) this.#relieve(lines)
      if (this.#wide(deliveries) || !this.#flow.runs(0)) this.#unpin(lines, deliveries)
      for (const { index } of [...this.#flow.pauses()]) if (index > 0) this.#unblock(lines, index - 1)
      this.#host.relieved()
    })
  }

  #pressed(deliveries: OffsetTracker): boolean {
    for (const _ of this.#flow.pauses()) return true
    return this.#wide(deliveries)
  }

  /** Well before the bound: until it is parked and committed, more comes. */
  #wide(tracker: OffsetTracker): boolean {
    return tracker.span >= wideSpan(tracker) && !this.#host.passesBy()
  }

  /** Works in the executor's queue may wait long for their subscription's turn: the oldest of them are parked. */
  #unqueue(lines: Lines, deliveries: OffsetTracker): void {
    const { executor } = this.#world
    const old = deliveries.base + wideSpan(deliveries) / 2
    for (const work of executor.withdraw(this.#owner)) {
      const { line } = work
      const pins = work.source === 'deliveries' && work.offset < old
      if (!pins || (line !== null && line.state !== null)) executor.offer(work)
      else if (line === null) lines.overflow(overflowKeyOf(work.delivery.subscriptionId), work)
      else {
        lines.putBack(work)
        lines.relieve(line)
      }
    }
  }

  /** A head in `deliveries` that may not start now can't be parked, or it would come after its followers: it hops. */
  #unblockHead(lines: Lines, line: Line<Work>): void {
    if (!line.ordered || line.open.size > 0) return
    const front = line.state !== null && line.head === null ? line.front[0] : undefined
    const stuck = line.head?.source === 'deliveries' ? line.head : front
    if (stuck === undefined) return
    lines.pump(line)
    if (line.open.size > 0) return
    if (line.head === stuck) line.head = null
    else line.front.shift()
    this.#host.hop(stuck)
    lines.settled(stuck, 'retry')
  }

  /** However few, what waits behind something holds back the watermark, and at the span's end the whole lane. */
  #unpin(lines: Lines, deliveries: OffsetTracker): void {
    if (this.#wide(deliveries)) this.#unqueue(lines, deliveries)
    for (const line of [...lines]) {
      this.#unblockHead(lines, line)
      if (!line.ordered || line.open.size > 0 || line.front.length + line.held.length === 0) continue
      lines.relieve(line)
      lines.pump(line)
    }
  }

  /** Heads that are due but may not start (paused, circuit open) fill their tier: they go round once more. */
  #unblock(lines: Lines, tier: number): void {
    for (const line of [...lines]) {
      const { head } = line
      if (head === null || head.source !== 'tier' || head.tier !== tier || line.open.size > 0) continue
      lines.pump(line)
      if (line.head !== head) continue
      line.head = null
      this.#host.hop(head)
    }
  }

  close(): void {
    this.#timer?.()
  }

  /** Works not yet started come back from the executor; ordered ones are parked behind their line's open one, others but for a few. */
  #relieve(lines: Lines): void {
    const { clock, executor, crowd } = this.#world
    for (const id of this.crowd.divert(clock.now())) {
      let kept = 0
      for (const work of executor.withdraw(this.#owner, id)) {
        if (work.line !== null) lines.putBack(work)
        else if (kept++ < crowd.keep) executor.offer(work)
        else lines.overflow(overflowKeyOf(id), work)
      }
      for (const line of [...lines]) {
        if (line.subscriptionId !== id) continue
        lines.relieve(line)
        lines.pump(line)
      }
    }
  }
}

function wideSpan({ limits }: OffsetTracker): number {
  return Math.min(limits.max / 2, 8_192)
}

const pressureMs = 250
