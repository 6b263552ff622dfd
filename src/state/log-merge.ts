import { HooktideError } from '../core/error.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { StatePosition } from '../core/state-view.ts'
import type { Clock, LogReader } from '../ports.ts'
import type { FoldInput } from './fold.ts'
import type { Source } from './sources.ts'

interface Stream {
  readonly source: Source
  readonly partition: number
  /** Where the next batch to be handed out begins. */
  at: number
  end: number
  /** Fetched and not yet handed out. */
  batch: FetchedBatch | null
}

/**
 * Reads many partitions as one log, roughly by time: a delivery and what becomes of it then come close together, which
 * spares the fold most of its look-ups. The result of the fold does not depend on that order. Holds one fetch per partition.
 */
export class LogMerge {
  readonly #reader: LogReader
  readonly #sources: readonly Source[]
  readonly #clock: Clock
  readonly #fetchBytes: number
  readonly #until: ((topic: string, partition: number) => number) | undefined
  #streams: Stream[] = []

  /** `until`: reads no further than that in each partition (a rebuild beside a live state). */
  constructor(
    reader: LogReader,
    sources: readonly Source[],
    clock: Clock,
    options: { fetchBytes?: number; until?: (topic: string, partition: number) => number } = {},
  ) {
    this.#reader = reader
    this.#sources = sources
    this.#clock = clock
    this.#fetchBytes = options.fetchBytes ?? 256 * 1024
    this.#until = options.until
  }

  /** From these positions on; partitions that have none from the start of the log. Rejects when the log is another one. */
  async open(positions: readonly StatePosition[]): Promise<void> {
    const folded = new Map(positions.map(({ topic, partition, folded }) => [`${topic}/${partition}`, folded]))
    this.#streams = []
    for (const source of this.#sources) {
      for (const [partition, end] of await this.#reader.ends(source.topic)) {
        const at = folded.get(`${source.topic}/${partition}`) ?? 0
        if (at > end) throw anotherLog(source.topic, partition, at, end)
        this.#streams.push({ source, partition, at, end: this.#bound(source.topic, partition, end), batch: null })
      }
    }
  }

  /** Looks where the log ends now. */
  async refresh(): Promise<void> {
    for (const { topic } of this.#sources) {
      const ends = await this.#reader.ends(topic)
      for (const stream of this.#streams) {
        if (stream.source.topic !== topic) continue
        const end = ends.get(stream.partition)
        if (end === undefined) continue
        if (end < stream.at) throw anotherLog(topic, stream.partition, stream.at, end)
        stream.end = this.#bound(topic, stream.partition, end)
      }
    }
  }

  /** The next batches, about `maxRecords` records (at least one batch); none: everything up to the known ends was handed out. */
  async next(maxRecords: number): Promise<readonly FoldInput[]> {
    const inputs: FoldInput[] = []
    let records = 0
    while (records < maxRecords) {
      await this.#fill()
      const stream = this.#oldest()
      if (stream === null) break
      const batch = stream.batch as FetchedBatch
      inputs.push({ kind: stream.source.kind, batch, from: stream.at, atMs: this.#clock.now() })
      records += batch.records.length
      stream.at = batch.nextOffset
      stream.batch = null
    }
    return inputs
  }

  /** Fetches ahead for the next call. */
  async fill(): Promise<void> {
    await this.#fill()
  }

  /** Records left up to the known ends. */
  get lag(): number {
    return this.#streams.reduce((sum, { at, end }) => sum + Math.max(0, end - at), 0)
  }

  async #fill(): Promise<void> {
    const empty = this.#streams.filter((stream) => stream.batch === null && stream.at < stream.end)
    if (empty.length === 0) return
    await Promise.all(
      empty.map(async (stream) => {
        const { source, partition, at: from, end } = stream
        const batch = await this.#reader.fetch({ topic: source.topic, partition, from, maxBytes: this.#fetchBytes })
        if (batch.nextOffset <= from) {
          throw new HooktideError('internal', `${source.topic}/${partition} gives nothing at ${from}`)
        }
        stream.batch = batch.nextOffset <= end ? batch : cut(batch, end)
      }),
    )
  }

  #oldest(): Stream | null {
    let oldest: Stream | null = null
    let oldestMs = Number.POSITIVE_INFINITY
    for (const stream of this.#streams) {
      if (stream.batch === null) continue
      // A batch without records only moves the position.
      const ms = stream.batch.records[0]?.timestampMs ?? 0
      if (oldest !== null && ms >= oldestMs) continue
      oldest = stream
      oldestMs = ms
    }
    return oldest
  }

  #bound(topic: string, partition: number, end: number): number {
    return Math.min(end, this.#until?.(topic, partition) ?? end)
  }
}

function cut(batch: FetchedBatch, end: number): FetchedBatch {
  return { ...batch, records: batch.records.filter(({ offset }) => offset < end), nextOffset: end }
}

function anotherLog(topic: string, partition: number, at: number, end: number): HooktideError {
  return new HooktideError(
    'state.unavailable',
    `${topic}/${partition} ends at ${end}, but the state was folded to ${at}`,
    {
      remedy: 'The topic was made anew, or it is another cluster: `hooktide state rebuild`, or correct state.path.',
    },
  )
}
