import { codeOf, messageOf } from '../core/error.ts'
import type { LogReader } from '../ports.ts'
import type { Lane } from './lane.ts'
import type { LaneWorld } from './lane-world.ts'

/** Reads `parked` for the lines that drain, from the lowest place any of them needs, as long as one does. */
export class ParkedSweep {
  readonly #world: LaneWorld
  readonly #lane: Lane
  readonly #reader: LogReader
  #timer: (() => void) | null = null
  #reading = false
  #stopped = false

  constructor(world: LaneWorld, lane: Lane, reader: LogReader) {
    this.#world = world
    this.#lane = lane
    this.#reader = reader
  }

  /** A line may need something: looked at in a moment, together with what else changes meanwhile. */
  wake(delayMs = pauseMs): void {
    if (this.#stopped || this.#reading || this.#timer !== null) return
    this.#timer = this.#world.clock.after(delayMs, () => {
      this.#timer = null
      if (this.#lane.parkedWanted() !== null) void this.#sweep()
    })
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.()
  }

  async #sweep(): Promise<void> {
    const { partition } = this.#lane
    const { topics, observer } = this.#world
    this.#reading = true
    let retryMs = pauseMs
    try {
      for (let from = this.#lane.parkedWanted(); from !== null; from = this.#lane.parkedWanted()) {
        const at = { topic: topics.parked, partition, from, maxBytes, maxWaitMs: 100 }
        const batch = await this.#reader.fetch(at)
        if (this.#stopped) return
        this.#lane.onParked(from, batch)
      }
    } catch (error) {
      if (this.#stopped) return
      observer.log('warn', 'parked.read_failed', { lane: partition, error: messageOf(error), code: codeOf(error) })
      retryMs = 500
    } finally {
      this.#reading = false
    }
    if (this.#lane.lineCount > 0) this.wake(retryMs)
  }
}

const pauseMs = 5
/** Above what one batch can hold. */
const maxBytes = 1024 * 1024
