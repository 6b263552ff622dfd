import type { GroupOffset, TopicPartition } from '../core/record.ts'
import type { Offsets } from '../ports.ts'
import type { KafkaClient } from './client.ts'
import { insist } from './deadline.ts'
import { translate } from './errors.ts'
import type { Link } from './link.ts'
import { library } from './load.ts'

interface OffsetFetchResponse {
  readonly responses: readonly {
    topic: string
    partitions: readonly { partition: number; offset: string; metadata: string | null; errorCode: number }[]
  }[]
  readonly errorCode: number
}

/**
 * What a group has committed, with the metadata that kafkajs's consumer throws away. Offsets of a transaction that is
 * still being decided are not seen (OffsetFetch v4): fence the transactional id first (design section 5, row 15).
 */
export class KafkaOffsets implements Offsets {
  readonly #client: KafkaClient
  readonly #link: Link

  constructor(client: KafkaClient) {
    this.#client = client
    this.#link = client.link()
  }

  async committed(group: string, partitions: readonly TopicPartition[]): Promise<readonly GroupOffset[]> {
    if (partitions.length === 0) return []
    const { clock } = this.#client.deps
    const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([topic, list]) => ({
      topic,
      partitions: list.map(({ partition }) => ({ partition })),
    }))
    const doing = { operation: 'read committed offsets', group }
    try {
      const answers = await insist(
        clock,
        clock.mono() + this.#client.deadlineMs,
        doing.operation,
        async () => {
          const broker = await this.#link.coordinator('group', group)
          const response = await this.#link.request<OffsetFetchResponse>(broker, 'OffsetFetch', {
            groupId: group,
            topics,
          })
          const codes = [response.errorCode, ...response.responses.flatMap((t) => t.partitions.map((p) => p.errorCode))]
          const code = codes.find((code) => code !== 0)
          if (code !== undefined) throw library.createErrorFromCode(code)
          return response.responses
        },
        (error) => this.#link.forget(error, { coordinators: [`group:${group}`] }),
      )
      const found = new Map<string, GroupOffset>()
      for (const { topic, partitions } of answers) {
        for (const { partition, offset, metadata } of partitions) {
          const value = Number(offset)
          found.set(`${partition}/${topic}`, {
            topic,
            partition,
            offset: value < 0 ? null : value,
            metadata: metadata ?? '',
          })
        }
      }
      return partitions.map(
        ({ topic, partition }) =>
          found.get(`${partition}/${topic}`) ?? { topic, partition, offset: null, metadata: '' },
      )
    } catch (error) {
      throw translate(error, doing)
    }
  }

  close(): void {
    this.#link.close()
  }
}
