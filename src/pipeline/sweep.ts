import { codeOf, messageOf } from '../core/error.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { LogReader } from '../ports.ts'
import type { Lane } from './lane.ts'
import type { LaneWorld } from './lane-world.ts'

/** What a second reader beside the lane's consumer reads, and when. */
export interface Swept {
  readonly topic: string
  /** Of the line in the log when it can't be read. */
  readonly failed: string
  /** Where to read now; null: nothing, or there is no room for it. */
  wanted(): number | null
  take(from: number, batch: FetchedBatch): void
  /** There is more, now or later. */
  more(): boolean
  /** Before the next look. */
  pauseMs(): number
  /** From one batch to the next without a pause. */
  readonly straight: boolean
}

/** `parked`, for the lines that drain: from the lowest place any of them needs, as long as one does. */
export function parkedOf(world: LaneWorld, lane: Lane): Swept {
  return {
    topic: world.topics.parked,
    failed: 'parked.read_failed',
    wanted: () => lane.parkedWanted(),
    take: (from, batch) => lane.onParked(from, batch),
    more: () => lane.lineCount > 0,
    pauseMs: () => soonMs,
    straight: true,
  }
}

/** What the lane's reader of `deliveries` has passed by, at full speed when that one has nothing else to do. */
export function bypassedOf(world: LaneWorld, lane: Lane): Swept {
  return {
    topic: world.topics.deliveries,
    failed: 'bypass.read_failed',
    wanted: () => lane.bypass.wanted(),
    take: (_, batch) => lane.onBypassed(batch),
    more: () => lane.bypass.size > 0,
    pauseMs: () => (lane.bypass.urgent ? soonMs : patientMs),
    straight: false,
  }
}

export class Sweep {
  readonly #world: LaneWorld
  readonly #partition: number
  readonly #reader: LogReader
  readonly #swept: Swept
  #timer: (() => void) | null = null
  #reading = false
  #stopped = false

  constructor(world: LaneWorld, partition: number, reader: LogReader, swept: Swept) {
    this.#world = world
    this.#partition = partition
    this.#reader = reader
    this.#swept = swept
  }

  /** Something may be wanted: looked at in a moment, together with what else changes meanwhile. */
  wake(delayMs = this.#swept.pauseMs()): void {
    if (this.#stopped || this.#reading || this.#timer !== null) return
    this.#timer = this.#world.clock.after(delayMs, () => {
      this.#timer = null
      const from = this.#swept.wanted()
      if (from !== null) void this.#read(from)
    })
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.()
  }

  async #read(first: number): Promise<void> {
    const { topic, failed, straight } = this.#swept
    const at = { topic, partition: this.#partition, maxBytes, maxWaitMs: 100 }
    this.#reading = true
    let retryMs: number | undefined
    try {
      for (let from: number | null = first; from !== null; from = straight ? this.#swept.wanted() : null) {
        const batch = await this.#reader.fetch({ ...at, from })
        if (this.#stopped) return
        this.#swept.take(from, batch)
      }
    } catch (error) {
      if (this.#stopped) return
      const fields = { lane: this.#partition, error: messageOf(error), code: codeOf(error) }
      this.#world.observer.log('warn', failed, fields)
      retryMs = failedMs
    } finally {
      this.#reading = false
    }
    if (this.#swept.more()) this.wake(retryMs)
  }
}

const soonMs = 5
/** While others stand ahead in the log. */
const patientMs = 250
/** While the broker is away: not two hundred tries, and lines, a second. */
const failedMs = 500
/** Above what one batch can hold. */
const maxBytes = 1024 * 1024
