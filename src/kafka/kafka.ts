import type { Kafka } from '../ports.ts'
import { KafkaClient, type KafkaDeps, type KafkaOptions } from './client.ts'
import { insist } from './deadline.ts'
import { translate } from './errors.ts'
import { createGroupConsumer } from './group-consumer.ts'
import { KafkaLogReader } from './log-reader.ts'
import { KafkaOffsets } from './offsets.ts'
import { KafkaProducer } from './producer.ts'
import { KafkaTransactionalProducer } from './transactional-producer.ts'

/** The real Kafka behind the port. Opens nothing until it is used; `close` ends what it made and was not closed yet. */
export function createKafka(options: KafkaOptions, deps: KafkaDeps): Kafka {
  const client = new KafkaClient(options, deps)
  const offsets = new KafkaOffsets(client)
  const link = client.link()
  const open = new Set<{ close(): Promise<void> }>()
  const own = <T extends { close(): Promise<void> }>(part: T): T => {
    open.add(part)
    const close = part.close.bind(part)
    part.close = () => {
      open.delete(part)
      return close()
    }
    return part
  }
  return {
    consumer(consumerOptions) {
      const consumer = createGroupConsumer(client, consumerOptions, deps)
      open.add({ close: () => consumer.stop() })
      return consumer
    },
    producer: () => own(new KafkaProducer(client)),
    transactional: (transactionalId) => own(new KafkaTransactionalProducer(client, transactionalId)),
    reader: () => own(new KafkaLogReader(client)),
    offsets,
    async partitions(topics) {
      try {
        const deadlineMs = deps.clock.mono() + client.deadlineMs
        return await insist(deps.clock, deadlineMs, 'read metadata', () => link.partitions(topics))
      } catch (error) {
        throw translate(error, { operation: 'read metadata', topic: (error as { topic?: string }).topic })
      }
    },
    async close() {
      await Promise.allSettled([...open].map((part) => part.close()))
      offsets.close()
      link.close()
    },
  }
}
