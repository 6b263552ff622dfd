import { codeOf, messageOf } from '../core/error.ts'
import type { LogReader } from '../ports.ts'
import type { Lane } from './lane.ts'
import type { LaneWorld } from './lane-world.ts'

/** Reads again what the lane's reader of `deliveries` has passed by, at full speed when that one has nothing else to do. */
export class BypassSweep {
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

  wake(delayMs = this.#lane.bypass.urgent ? soonMs : patientMs): void {
    if (this.#stopped || this.#reading || this.#timer !== null) return
    this.#timer = this.#world.clock.after(delayMs, () => {
      this.#timer = null
      void this.#read()
    })
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.()
  }

  async #read(): Promise<void> {
    const from = this.#lane.bypass.wanted()
    if (from === null) return
    const { partition } = this.#lane
    const { topics, observer } = this.#world
    this.#reading = true
    let retryMs: number | undefined
    try {
      const batch = await this.#reader.fetch({ topic: topics.deliveries, partition, from, maxBytes, maxWaitMs: 100 })
      if (this.#stopped) return
      this.#lane.onBypassed(batch)
    } catch (error) {
      if (this.#stopped) return
      observer.log('warn', 'bypass.read_failed', { lane: partition, error: messageOf(error), code: codeOf(error) })
      retryMs = failedMs
    } finally {
      this.#reading = false
    }
    if (this.#lane.bypass.size > 0) this.wake(retryMs)
  }
}

const soonMs = 5
/** While others stand ahead in the log. */
const patientMs = 250
/** While the broker is away: not two hundred tries, and lines, a second. */
const failedMs = 500
/** Above what one batch can hold. */
const maxBytes = 1024 * 1024
