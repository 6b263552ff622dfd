import { overflowKeyOf } from '../core/line.ts'
import { Crowd } from './crowd.ts'
import type { LaneFlow } from './lane-flow.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Lines } from './lines.ts'
import type { WorkOwner } from './work.ts'

/** Makes room in a full lane: what does not move is parked. Knows who holds how much of the lane's memory. */
export class Relief {
  readonly crowd: Crowd
  readonly #world: LaneWorld
  readonly #owner: WorkOwner
  readonly #flow: LaneFlow
  readonly #relieved: () => void
  #timer: (() => void) | null = null

  constructor(world: LaneWorld, owner: WorkOwner, flow: LaneFlow, relieved: () => void) {
    this.#world = world
    this.#owner = owner
    this.#flow = flow
    this.#relieved = relieved
    this.crowd = new Crowd(world.crowd)
  }

  /** Full for a while, not just for a moment: then relief is due. */
  watch(lines: Lines): void {
    if (this.#timer !== null || this.#flow.runs(0)) return
    this.#timer = this.#world.clock.after(pressureMs, () => {
      this.#timer = null
      if (this.#flow.runs(0)) return
      this.#relieve(lines)
      this.#relieved()
    })
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

const pressureMs = 250
