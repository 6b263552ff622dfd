import type { FetchedBatch, TopicPartition } from '../../src/core/record.ts'
import type { GroupHandlers } from '../../src/ports.ts'
import type { Link } from './link.ts'
import type { MemoryCore } from './memory-core.ts'
import type { PartitionLog, Read } from './partition-log.ts'
import { keyOf } from './protocol.ts'
import { between } from './random.ts'

interface Fetched {
  readonly slot: Slot
  readonly seeks: number
  readonly from: number
  readonly read: Read
  readonly end: number
}

interface Slot {
  readonly log: PartitionLog
  /** null: gained, and not sought yet. */
  position: number | null
  /** A repeat never goes behind what was sought. */
  floor: number
  paused: boolean
  /** Counts seeks: what was fetched before one is thrown away. */
  seeks: number
  unwatch: () => void
}

/** Polling of one assignment (one generation): one fetch under way at a time, over all partitions that are not paused. */
export class Fetching {
  readonly #core: MemoryCore
  readonly #link: Link
  readonly #group: string
  readonly #handlers: Pick<GroupHandlers, 'onBatch' | 'onUndecodable'>
  readonly #slots = new Map<string, Slot>()
  #polling = false
  #stopped = false

  constructor(
    core: MemoryCore,
    link: Link,
    group: string,
    partitions: readonly TopicPartition[],
    /** Where kept partitions stood. */
    positions: ReadonlyMap<string, number>,
    handlers: Pick<GroupHandlers, 'onBatch' | 'onUndecodable'>,
  ) {
    this.#core = core
    this.#link = link
    this.#group = group
    this.#handlers = handlers
    for (const at of partitions) {
      const log = core.log(at.topic, at.partition)
      const slot: Slot = {
        log,
        position: this.#startOf(log, positions.get(keyOf(at))),
        floor: 0,
        paused: true,
        seeks: 0,
        unwatch: () => {},
      }
      slot.unwatch = log.watch(() => link.process.enter(() => this.#wake(slot)))
      this.#slots.set(keyOf(at), slot)
    }
  }

  pause(partitions: readonly TopicPartition[]): void {
    for (const at of partitions) {
      const slot = this.#slots.get(keyOf(at))
      if (slot !== undefined) slot.paused = true
    }
  }

  resume(partitions: readonly TopicPartition[]): void {
    const resumed = partitions.flatMap((at) => this.#slots.get(keyOf(at)) ?? [])
    // All of them first: what is resumed together may also be fetched together.
    for (const slot of resumed) slot.paused = false
    for (const slot of resumed) this.#wake(slot)
  }

  seek(at: TopicPartition, offset: number): void {
    const slot = this.#slots.get(keyOf(at))
    if (slot === undefined) return
    slot.position = offset
    slot.floor = offset
    slot.seeks++
    this.#wake(slot)
  }

  stop(): void {
    this.#stopped = true
    for (const slot of this.#slots.values()) slot.unwatch()
  }

  positions(partitions: readonly TopicPartition[]): Map<string, number> {
    const positions = new Map<string, number>()
    for (const at of partitions) {
      const position = this.#slots.get(keyOf(at))?.position ?? null
      if (position !== null) positions.set(keyOf(at), position)
    }
    return positions
  }

  /** Only asks when there is something to get: a long poll without its timer. */
  #wake(slot: Slot): void {
    if (!this.#stopped && !this.#polling && this.#wants(slot)) void this.#poll()
  }

  #wants(slot: Slot): boolean {
    if (slot.paused) return false
    const { position, log } = slot
    return position !== null && (position < log.stableEnd || position > log.end)
  }

  /** What was kept may come again from the committed offset, as with stock kafkajs. */
  #startOf(log: PartitionLog, position: number | undefined): number | null {
    if (position === undefined) return null
    if (!this.#core.dice.hit('duplicateFetch', this.#link.process.id)) return position
    return Math.min(position, this.#core.group(this.#group).committed(log).offset ?? log.start)
  }

  async #poll(): Promise<void> {
    this.#polling = true
    while (!this.#stopped) {
      const wanted = [...this.#slots.values()].filter((slot) => this.#wants(slot))
      if (wanted.length === 0) break
      try {
        this.#deliver(await this.#link.call(() => this.#fetch(wanted)))
      } catch {
        await this.#link.sleep(50 + this.#core.latencyRandom() * 100)
      }
    }
    this.#polling = false
  }

  /** At the broker. */
  #fetch(wanted: readonly Slot[]): Fetched[] {
    const fetched: Fetched[] = []
    let unavailable: unknown = null
    for (const slot of wanted) {
      const { log, seeks } = slot
      try {
        this.#core.requireLeader(log)
        let from = slot.position as number
        // Out of range, below or above: from the beginning, never to the end.
        if (from < log.start || from > log.end) from = log.start
        const limit = between(this.#core.dice.stream('batch size'), 1, this.#core.settings.maxFetchRecords)
        fetched.push({ slot, seeks, from, read: log.read(from, limit, 1_048_576), end: log.end })
      } catch (error) {
        unavailable = error
      }
    }
    if (fetched.length === 0 && unavailable !== null) throw unavailable
    return fetched
  }

  #deliver(fetched: readonly Fetched[]): void {
    const { dice } = this.#core
    for (const { slot, seeks, from, read, end } of fetched) {
      // A handler may have paused, sought or stopped since, also in the batch before this one.
      if (this.#stopped || slot.paused || slot.seeks !== seeks) continue
      const { topic, partition } = slot.log
      slot.position = read.nextOffset
      if (read.t === 'undecodable') {
        this.#handlers.onUndecodable({
          topic,
          partition,
          offset: read.offset,
          nextOffset: read.nextOffset,
          reason: read.reason,
        })
        continue
      }
      const { records, nextOffset } = read
      if (nextOffset <= from) continue
      const batch: FetchedBatch = { topic, partition, records, nextOffset, highWatermark: end }
      this.#handlers.onBatch(batch)
      if (slot.seeks === seeks && dice.hit('duplicateFetch', this.#link.process.id)) {
        slot.position = Math.max(from, slot.floor)
      }
    }
  }
}
