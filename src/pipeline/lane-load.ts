import type { CircuitMark, FailingMark, LaneState, LineState, OffsetsState } from '../core/lane-state.ts'
import { OffsetTracker, type SpanLimits } from '../core/offset-tracker.ts'
import { OriginFilter } from '../core/origin-filter.ts'
import type { GroupOffset, InRecord, TopicPartition } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { LogReader, Observer, Offsets } from '../ports.ts'
import { type LaneTopics, sourceTopics } from './lane-topics.ts'

export type LaneContents = {
  readonly trackers: readonly OffsetTracker[]
  readonly lines: readonly LineState[]
  readonly filter: OriginFilter
  readonly circuits: readonly CircuitMark[]
  readonly failing: readonly FailingMark[]
  /** What is done of a source above its committed offset, where the commit's metadata has no room for it. By topic. */
  readonly beside: ReadonlyMap<string, OffsetsState>
  readonly parkedEnd: number
  /** Where each source ended then, in the order of `trackers`. */
  readonly ends: readonly number[]
}

export interface LoadInput {
  readonly partition: number
  readonly group: string
  readonly topics: LaneTopics
  readonly span: SpanLimits
  readonly offsets: Offsets
  readonly reader: LogReader
  readonly observer: Observer
  decodeLaneState(record: Pick<InRecord, 'key' | 'value'>): Result<LaneState>
}

/** What Kafka holds of a lane. Called after the fence, so nothing of it can change behind our back. */
export async function loadLane(input: LoadInput): Promise<LaneContents> {
  // All at once: one after the other they are a score of round trips, while nobody delivers for the lane.
  const [positions, { lines, circuits, failing, filter, beside }, ends] = await Promise.all([
    loadPositions(input),
    loadState(input),
    input.reader.ends(input.topics.parked, [input.partition]),
  ])
  const trackers = positions.map((position) => tracker(input, position, beside.get(position.topic)))
  const parkedEnd = ends.get(input.partition) ?? 0
  return { trackers, lines, circuits, failing, filter, beside, parkedEnd, ends: positions.map(({ end }) => end) }
}

interface Position {
  readonly topic: string
  /** Bounds of the log. */
  readonly start: number
  readonly end: number
  readonly committed: GroupOffset | undefined
}

async function loadPositions({ partition, topics, offsets, group, reader }: LoadInput): Promise<Position[]> {
  const partitions: TopicPartition[] = sourceTopics(topics).map((topic) => ({ topic, partition }))
  const [committed, bounds] = await Promise.all([
    offsets.committed(group, partitions),
    Promise.all(
      partitions.map(({ topic }) => Promise.all([reader.starts(topic, [partition]), reader.ends(topic, [partition])])),
    ),
  ])
  return partitions.map(({ topic }, index) => {
    const [start, end] = (bounds[index] ?? []).map((found) => found.get(partition) ?? 0) as [number, number]
    const at = committed.find((entry) => entry.topic === topic && entry.partition === partition)
    return { topic, start, end, committed: at }
  })
}

function tracker(input: LoadInput, at: Position, beside: OffsetsState | undefined): OffsetTracker {
  const { partition, observer, span } = input
  const { topic, start, end } = at
  const offset = at.committed?.offset ?? null
  if (offset === null) return new OffsetTracker(start, span)
  const metadata = at.committed?.metadata ?? ''
  // Written in one transaction with the offset: of another base it says nothing.
  const runs = beside?.base === offset ? beside.runs : null
  const restored = OffsetTracker.restore(offset, metadata, span, runs)
  if (!restored.understood)
    observer.log('warn', 'lane.foreign_metadata', {
      topic,
      partition,
      offset,
      what: 'commit metadata is not ours; records above the offset may be delivered again',
    })
  if (offset >= start && offset <= end) return restored.tracker
  const what =
    offset < start
      ? 'retention has taken records that were not done'
      : 'the topic is shorter than the committed offset: was it recreated?'
  const lost = Math.max(0, start - offset)
  const fields = { topic, partition, committed: offset, logStart: start, logEnd: end, lost, what }
  observer.log('error', 'lane.offset_out_of_range', fields)
  observer.count('offset_gap', lost)
  // What is done above the watermark still holds when only the front of the log is gone.
  const tracker = offset < start ? restored.tracker : new OffsetTracker(start, span)
  tracker.skipTo(start)
  return tracker
}

async function loadState(
  input: LoadInput,
): Promise<Pick<LaneContents, 'lines' | 'circuits' | 'failing' | 'filter' | 'beside'>> {
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
  const failing: FailingMark[] = []
  const beside = new Map<string, OffsetsState>()
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
    else if (state.kind === 'failing') failing.push(state)
    else if (state.kind === 'offsets') beside.set(state.topic, state)
    else filter.restore(state)
  }
  return { lines, circuits, failing, filter, beside }
}
