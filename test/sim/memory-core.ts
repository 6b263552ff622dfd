import { HooktideError } from '../../src/core/error.ts'
import { type OutRecord, recordBytes } from '../../src/core/record.ts'
import type { Group } from './group.ts'
import type { LinkWorld } from './link.ts'
import type { PartitionLog } from './partition-log.ts'
import { codeOf } from './protocol.ts'
import type { SimProcess } from './sim-process.ts'
import type { Transactions } from './transactions.ts'

/** The broker as its own clients see it. Everything here happens at the broker, at once. */
export interface MemoryCore extends LinkWorld {
  readonly transactions: Transactions
  readonly settings: {
    readonly maxMessageBytes: number
    readonly heartbeatMs: number
    readonly sessionTimeoutMs: number
    readonly maxFetchRecords: number
    readonly requestTimeoutMs: number
    readonly longPollMs: number
  }
  hasTopic(topic: string): boolean
  /** Throws `unknown-topic`. */
  logs(topic: string): readonly PartitionLog[]
  log(topic: string, partition: number): PartitionLog
  group(name: string): Group
  /** Throws `unavailable` while the partition has no leader. */
  requireLeader(log: PartitionLog): void
  requireCoordinator(): void
  /** Timestamps of records that `process` appends to `topic` now. */
  stamp(topic: string, process: SimProcess): { timestampMs: number; appendTimeMs: number | null }
}

/** What of a record counts against `max.message.bytes`. */
export function outBytes(record: OutRecord): number {
  return recordBytes({ ...record, key: typeof record.key === 'string' ? Buffer.from(record.key) : record.key })
}

export function byPartition(records: readonly OutRecord[]): OutRecord[][] {
  const groups = new Map<string, OutRecord[]>()
  for (const record of records) {
    const key = `${record.topic}/${record.partition}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [record])
    else group.push(record)
  }
  return [...groups.values()]
}

/** The port's error for a broker's answer; `other` where it says nothing more precise. */
export function portError(
  error: unknown,
  other: 'producer.failed' | 'broker.unavailable' | 'consumer.failed',
): HooktideError {
  if (error instanceof HooktideError) return error
  switch (codeOf(error)) {
    case 'fenced':
      return new HooktideError('producer.fenced', 'another producer took over the transactional id', { cause: error })
    case 'too-large':
      return new HooktideError('record.too-large', String(error), { cause: error })
    case 'unknown-topic':
      return new HooktideError('topic.missing', String(error), { cause: error })
    case 'out-of-range':
      return new HooktideError('internal', 'fetch beyond the end of the log', { cause: error })
    case null:
      return new HooktideError('internal', String(error), { cause: error })
    default:
      return new HooktideError(other, String(error), { cause: error })
  }
}
