import type { Position } from '../sim/evidence.ts'
import type { Marked } from './marked-log.ts'

/**
 * Every offset that a group has ever committed, in the order in which they came to count: `__consumer_offsets`. Complete
 * as long as its segment is not compacted, which takes 100 MB. Source: Kafka's OffsetCommitKey and OffsetCommitValue
 * (group-coordinator/src/main/resources/common/message).
 */
export function committedPositions(log: readonly Marked[], group: string): Position[] {
  const positions: Position[] = []
  for (const { record, decidedMs } of log.toSorted((a, b) => a.decidedMs - b.decidedMs)) {
    if (record.key === null || record.value === null) continue
    const key = new Fields(record.key)
    if (key.int16() > 1 || key.string() !== group) continue
    const [topic, partition] = [key.string(), key.int32()]
    const value = new Fields(record.value)
    value.int16()
    positions.push({ topic, partition, offset: value.int64(), atMs: decidedMs })
  }
  return positions
}

class Fields {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int16(): number {
    this.#at += 2
    return this.#bytes.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#bytes.readInt32BE(this.#at - 4)
  }

  int64(): number {
    this.#at += 8
    return Number(this.#bytes.readBigInt64BE(this.#at - 8))
  }

  string(): string {
    return this.#take(this.int16())
  }

  #take(length: number): string {
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at).toString()
  }
}
