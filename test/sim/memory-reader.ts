import { HooktideError } from '../../src/core/error.ts'
import type { FetchedBatch, GroupOffset, TopicPartition } from '../../src/core/record.ts'
import type { LogReader, Offsets } from '../../src/ports.ts'
import type { Link } from './link.ts'
import { type MemoryCore, portError } from './memory-core.ts'
import type { PartitionLog, Read } from './partition-log.ts'
import { ProtocolError } from './protocol.ts'
import { between } from './random.ts'

export class MemoryReader implements LogReader {
  readonly #core: MemoryCore
  readonly #link: Link
  #closed = false

  constructor(core: MemoryCore, link: Link) {
    this.#core = core
    this.#link = link
  }

  ends(topic: string, partitions?: readonly number[]): Promise<ReadonlyMap<number, number>> {
    return this.#bounds(topic, partitions, (log) => log.stableEnd)
  }

  starts(topic: string, partitions?: readonly number[]): Promise<ReadonlyMap<number, number>> {
    return this.#bounds(topic, partitions, (log) => log.start)
  }

  async fetch(at: TopicPartition & { from: number; maxBytes?: number; maxWaitMs?: number }): Promise<FetchedBatch> {
    this.#open()
    try {
      return await this.#link.call(() => this.#fetch(at))
    } catch (error) {
      throw portError(error, 'broker.unavailable')
    }
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  async #fetch(at: TopicPartition & { from: number; maxBytes?: number; maxWaitMs?: number }): Promise<FetchedBatch> {
    const log = this.#core.log(at.topic, at.partition)
    this.#core.requireLeader(log)
    if (at.from > log.end) throw new ProtocolError('out-of-range')
    let read = this.#read(log, at.from, at.maxBytes)
    if (read.t === 'records' && read.records.length === 0 && (at.maxWaitMs ?? 0) > 0) {
      await this.#something(log, Math.max(at.maxWaitMs ?? 0, this.#core.settings.longPollMs))
      read = this.#read(log, at.from, at.maxBytes)
    }
    const { topic, partition } = at
    const records = read.t === 'records' ? read.records : []
    return { topic, partition, records, nextOffset: read.nextOffset, highWatermark: log.end }
  }

  #read(log: PartitionLog, from: number, maxBytes = 1_048_576): Read {
    const limit = between(this.#core.dice.stream('batch size'), 1, this.#core.settings.maxFetchRecords)
    return log.read(from, limit, maxBytes)
  }

  #something(log: PartitionLog, maxWaitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = log.watch(() => done())
      const cancel = this.#core.clock.after(maxWaitMs, () => done())
      const done = () => {
        stop()
        cancel()
        resolve()
      }
    })
  }

  async #bounds(
    topic: string,
    partitions: readonly number[] | undefined,
    of: (log: PartitionLog) => number,
  ): Promise<ReadonlyMap<number, number>> {
    this.#open()
    try {
      return await this.#link.call(() => {
        const bounds = new Map<number, number>()
        for (const log of this.#core.logs(topic)) {
          if (partitions !== undefined && !partitions.includes(log.partition)) continue
          this.#core.requireLeader(log)
          bounds.set(log.partition, of(log))
        }
        return bounds
      })
    } catch (error) {
      throw portError(error, 'broker.unavailable')
    }
  }

  #open(): void {
    if (this.#closed) throw new HooktideError('internal', 'reader is closed')
  }
}

export class MemoryOffsets implements Offsets {
  readonly #core: MemoryCore
  readonly #link: Link

  constructor(core: MemoryCore, link: Link) {
    this.#core = core
    this.#link = link
  }

  /** Like OffsetFetch v4: what a transaction has decided but not yet marked is not seen (fence first). */
  async committed(group: string, partitions: readonly TopicPartition[]): Promise<readonly GroupOffset[]> {
    try {
      return await this.#link.call(() => {
        this.#core.requireCoordinator()
        return partitions.map((at) => this.#core.group(group).committed(at))
      })
    } catch (error) {
      throw portError(error, 'broker.unavailable')
    }
  }
}
