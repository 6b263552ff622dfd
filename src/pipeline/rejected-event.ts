import type { InRecord, OutRecord, TopicPartition } from '../core/record.ts'
import { rejectedRecord } from '../core/rejected.ts'
import type { RouterDeps } from './router-deps.ts'

/** An event that can't be read: kept in `rejected` with the reason, told and counted. */
export function rejectedEvent(
  deps: Pick<RouterDeps, 'observer' | 'topics' | 'rejectedPartitions'>,
  at: TopicPartition,
  record: InRecord,
  why: { readonly code: string; readonly reason: string },
): OutRecord {
  const { observer, topics, rejectedPartitions } = deps
  const { code, reason } = why
  observer.log('warn', 'event.rejected', { ...at, offset: record.offset, code, reason })
  observer.count('events_rejected', 1, { code })
  const partition = at.partition % rejectedPartitions
  return { topic: topics.rejected, partition, ...rejectedRecord(record, at, why) }
}
