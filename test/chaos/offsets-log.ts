import { readTopic } from '../../src/cli/read-topic.ts'
import type { LogReader } from '../../src/ports.ts'
import type { Position } from '../sim/evidence.ts'

/**
 * Every offset that a group has ever committed, in the order of the log: `__consumer_offsets`, read committed. Complete
 * as long as its segment is not compacted, which takes 100 MB. Source: Kafka's OffsetCommitKey and OffsetCommitValue
 * (group-coordinator/src/main/resources/common/message).
 */
export async function committedPositions(reader: LogReader, group: string): Promise<Position[]> {
  const positions: Position[] = []
  for await (const { record } of readTopic(reader, '__consumer_offsets')) {
    if (record.key === null || record.value === null) continue
    const key = new Fields(record.key)
    if (key.int16() > 1 || key.string() !== group) continue
    const [topic, partition] = [key.string(), key.int32()]
    const value = new Fields(record.value)
    const version = value.int16()
    const offset = value.int64()
    if (version >= 3) value.int32()
    // From version 4 on (Kafka 4.1) strings are compact.
    if (version >= 4) value.compactString()
    else value.string()
    positions.push({ topic, partition, offset, atMs: value.int64() })
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

  compactString(): string {
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes.readUInt8(this.#at++)
      length |= (byte & 0x7f) << shift
      if (byte < 0x80) return this.#take(length - 1)
    }
  }

  #take(length: number): string {
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at).toString()
  }
}
