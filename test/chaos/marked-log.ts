import type { InRecord } from '../../src/core/record.ts'
import { KafkaClient } from '../../src/kafka/client.ts'
import { FetchGroup } from '../../src/kafka/fetch-group.ts'
import { realClock } from '../support/clock.ts'

export interface Marked {
  readonly partition: number
  readonly record: InRecord
  /** When it came to count: the append time of its transaction's commit marker, or its own. */
  readonly decidedMs: number
}

const nobody = { log() {}, count() {}, time() {} }

/**
 * A topic's committed records with the moment from which each counts. The product's readers have no use for markers, so
 * this looks at raw batches. In the order of the log, partition by partition.
 */
export class MarkedLog {
  readonly #client: KafkaClient

  constructor(brokers: string) {
    this.#client = new KafkaClient(
      { brokers: brokers.split(','), clientId: 'chaos-driver' },
      { clock: realClock, observer: nobody },
    )
  }

  async read(topic: string): Promise<Marked[]> {
    const link = this.#client.link()
    try {
      const group = new FetchGroup(link, realClock)
      const count = (await link.partitions([topic])).get(topic) ?? 0
      const all = await Promise.all(
        Array.from({ length: count }, (_, partition) => readPartition(group, topic, partition)),
      )
      return all.flat()
    } finally {
      link.close()
    }
  }
}

async function readPartition(group: FetchGroup, topic: string, partition: number): Promise<Marked[]> {
  const marked: Marked[] = []
  const open = new Map<number, InRecord[]>()
  for (let from = 0; ; ) {
    const data = await group.fetch({ topic, partition, from, maxBytes: 4_000_000, maxWaitMs: 0, alone: true })
    if (data.errorCode !== 0) throw new Error(`${topic}/${partition} can not be read: error ${data.errorCode}`)
    const before = from
    for (const batch of data.messages.batches) {
      if (batch.nextOffset <= from) continue
      from = batch.nextOffset
      if (batch.control !== null) {
        const decidedMs = batch.records[0]?.timestampMs ?? Number.NaN
        const ended = open.get(batch.producerId) ?? []
        open.delete(batch.producerId)
        if (batch.control === 'commit') for (const record of ended) marked.push({ partition, record, decidedMs })
      } else if (batch.transactional) {
        const list = open.get(batch.producerId) ?? []
        list.push(...batch.records)
        open.set(batch.producerId, list)
      } else {
        for (const record of batch.records) marked.push({ partition, record, decidedMs: record.timestampMs })
      }
    }
    if (from >= Number(data.lastStableOffset)) return marked.sort((a, b) => a.record.offset - b.record.offset)
    if (from === before) throw new Error(`${topic}/${partition} gives nothing at ${from}`)
  }
}
