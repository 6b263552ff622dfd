import type { Env } from '../config/read.ts'
import type { Config } from '../config.ts'
import { KafkaTopicAdmin } from '../kafka/admin.ts'
import { KafkaClient } from '../kafka/client.ts'
import { createKafka } from '../kafka/kafka.ts'
import type { Clock, Kafka, Observer, TopicAdmin } from '../ports.ts'
import { References } from '../secrets/references.ts'
import { kafkaOptions } from './kafka-options.ts'

/** One connection to a cluster, for a command or for the service. */
export function connectKafka(
  config: Config,
  env: Env,
  deps: { clock: Clock; observer: Observer },
): { kafka: Kafka; admin: TopicAdmin; close(): Promise<void> } {
  const references = new References({ env, directory: config.secrets.directory, clock: deps.clock })
  const options = kafkaOptions(config, references)
  const kafka = createKafka(options, deps)
  const admin = new KafkaTopicAdmin(new KafkaClient(options, deps))
  return {
    kafka,
    admin,
    async close() {
      await admin.close()
      await kafka.close()
    },
  }
}
