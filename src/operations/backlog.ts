import { deliveryHeader } from '../core/delivery.ts'
import { OffsetTracker } from '../core/offset-tracker.ts'
import { type GroupOffset, type InRecord, recordBytes } from '../core/record.ts'
import type { LogReader } from '../ports.ts'

/** What of a partition is not done, by what its owner has committed. */
export interface Backlog {
  readonly topic: string
  readonly partition: number
  /** Null: nothing was ever committed. */
  readonly committed: number | null
  readonly start: number
  readonly end: number
  /** Offsets between the committed one and the end, gaps included. */
  readonly lag: number
  /** Records not done. */
  readonly depth: number
  /** False: there were too many to look at each; `depth` then still counts transaction markers. */
  readonly exact: boolean
  /** First record that is not done. */
  readonly oldest: { readonly offset: number; readonly timestampMs: number; readonly dueMs: number | null } | null
  /** Records that retention has taken before they were done. */
  readonly lost: number
}

/** Above either, records are not looked at one by one any more: bodies are read along. */
const exactSpan = 5000
const exactBytes = 2 * 1024 * 1024

export async function readBacklog(reader: LogReader, at: GroupOffset, start: number, end: number): Promise<Backlog> {
  const { topic, partition, offset: committed, metadata } = at
  // Beyond the end: the topic was recreated, and its owner will begin at the start.
  const known = committed !== null && committed <= end
  const base = known ? Math.max(committed, start) : start
  const tracker = known ? OffsetTracker.restore(committed, metadata).tracker : null
  const lost = known ? Math.max(0, start - committed) : 0
  const isDone = (offset: number) => tracker?.isDone(offset) ?? false
  let oldest: InRecord | null = null
  let seen = 0
  let bytes = 0
  let from = base
  while (from < end && (oldest === null || (end - base <= exactSpan && bytes < exactBytes))) {
    const batch = await reader.fetch({ topic, partition, from, maxBytes: 256 * 1024 })
    for (const record of batch.records) {
      bytes += recordBytes(record)
      if (record.offset >= end || isDone(record.offset)) continue
      oldest ??= record
      seen++
    }
    if (batch.nextOffset <= from) break
    from = batch.nextOffset
  }
  const exact = from >= end
  return {
    topic,
    partition,
    committed,
    start,
    end,
    lag: end - base,
    depth: exact ? seen : undone(base, end, isDone),
    exact,
    oldest: oldest === null ? null : { offset: oldest.offset, timestampMs: oldest.timestampMs, dueMs: dueOf(oldest) },
    lost,
  }
}

function undone(base: number, end: number, isDone: (offset: number) => boolean): number {
  // Nothing is done beyond the tracker's span.
  const spanEnd = Math.min(end, base + 16_384)
  let done = 0
  for (let offset = base; offset < spanEnd; offset++) if (isDone(offset)) done++
  return end - base - done
}

function dueOf(record: InRecord): number | null {
  const due = Number(record.headers[deliveryHeader.due]?.toString() ?? Number.NaN)
  return Number.isSafeInteger(due) ? due : null
}
