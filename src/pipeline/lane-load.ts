import type { CircuitMark, LaneState, LineState } from '../core/lane-state.ts'
import { OffsetTracker } from '../core/offset-tracker.ts'
import { OriginFilter } from '../core/origin-filter.ts'
import type { InRecord, TopicPartition } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { LogReader, Observer, Offsets } from '../ports.ts'
import { type LaneTopics, sourceTopics } from './lane-topics.ts'

export type LaneContents = {
  readonly trackers: readonly OffsetTracker[]
  readonly lines: readonly LineState[]
  readonly filter: OriginFilter
  readonly circuits: readonly CircuitMark[]
  readonly parkedEnd: number
  /** Where each source ended then, in the order of `trackers`. */
  readonly ends: readonly number[]
}

export interface LoadInput {
  readonly partition: number
  readonly group: string
  readonly topics: LaneTopics
  readonly maxSpan: number
  readonly offsets: Offsets
  readonly reader: LogReader
  readonly observer: Observer
  decodeLaneState(record: Pick<InRecord, 'key' | 'value'>): Result<LaneState>
}

/** What Kafka holds of a lane. Called after the fence, so nothing of it can change behind our back. */
export async function loadLane(input: LoadInput): Promise<LaneContents> {
  // All at once: one after the other they are a score of round trips, while nobody delivers for the lane.
  const [{ trackers, ends: sourceEnds }, { lines, circuits, filter }, ends] = await Promise.all([
    loadTrackers(input),
    loadState(input),
    input.reader.ends(input.topics.parked, [input.partition]),
  ])
  return { trackers, lines, circuits, filter, parkedEnd: ends.get(input.partition) ?? 0, ends: sourceEnds }
}

async function loadTrackers(input: LoadInput): Promise<{ trackers: OffsetTracker[]; ends: number[] }> {
  const { partition, observer } = input
  const partitions: TopicPartition[] = sourceTopics(input.topics).map((topic) => ({ topic, partition }))
  const [committed, bounds] = await Promise.all([
    input.offsets.committed(input.group, partitions),
    Promise.all(
      partitions.map(({ topic }) =>
        Promise.all([input.reader.starts(topic, [partition]), input.reader.ends(topic, [partition])]),
      ),
    ),
  ])
  const trackers: OffsetTracker[] = []
  const ends: number[] = []
  for (const [index, { topic }] of partitions.entries()) {
    const position = committed.find((entry) => entry.topic === topic && entry.partition === partition)
    const [start, end] = (bounds[index] ?? []).map((offsets) => offsets.get(partition) ?? 0) as [number, number]
    ends.push(end)
    const offset = position?.offset ?? null
    if (offset === null) {
      trackers.push(new OffsetTracker(start, input.maxSpan))
      continue
    }
    if (offset < start || offset > end) {
      const what =
        offset < start
          ? 'retention has taken records that were not done'
          : 'the topic is shorter than the committed offset: was it recreated?'
      observer.log('error', 'lane.offset_out_of_range', {
        topic,
        partition,
        committed: offset,
        logStart: start,
        logEnd: end,
        lost: Math.max(0, start - offset),
        what,
      })
      observer.count('offset_gap', Math.max(0, start - offset))
      // Bits above the watermark still hold when only the front of the log is gone.
      const tracker =
        offset < start
          ? OffsetTracker.restore(offset, position?.metadata ?? '', input.maxSpan).tracker
          : new OffsetTracker(start, input.maxSpan)
      tracker.skipTo(start)
      trackers.push(tracker)
      continue
    }
    const { tracker, understood } = OffsetTracker.restore(offset, position?.metadata ?? '', input.maxSpan)
    if (!understood)
      observer.log('warn', 'lane.foreign_metadata', {
        topic,
        partition,
        offset,
        what: 'commit metadata is not ours; records above the offset may be delivered again',
      })
    trackers.push(tracker)
  }
  return { trackers, ends }
}

async function loadState(
  input: LoadInput,
): Promise<{ lines: LineState[]; circuits: CircuitMark[]; filter: OriginFilter }> {
  const { partition, reader, observer } = input
  const topic = input.topics.laneState
  const [starts, ends] = await Promise.all([reader.starts(topic, [partition]), reader.ends(topic, [partition])])
  const end = ends.get(partition) ?? 0
  let from = starts.get(partition) ?? 0
  const latest = new Map<string, InRecord>()
  while (from < end) {
    const batch = await reader.fetch({ topic, partition, from, maxBytes: 4 << 20 })
    for (const record of batch.records) {
      if (record.key === null) continue
      if (record.value === null) latest.delete(record.key.toString())
      else latest.set(record.key.toString(), record)
    }
    from = batch.nextOffset
  }
  const lines: LineState[] = []
  const circuits: CircuitMark[] = []
  const filter = new OriginFilter()
  for (const [key, record] of latest) {
    const decoded = input.decodeLaneState(record)
    if (!decoded.ok) {
      observer.log('error', 'lane_state.unreadable', { partition, key, offset: record.offset, reason: decoded.reason })
      continue
    }
    const state = decoded.value
    if (state.kind === 'line') lines.push(state)
    else if (state.kind === 'circuit') circuits.push(state)
    else filter.restore(state)
  }
  return { lines, circuits, filter }
}
