import { library } from '../../src/kafka/load.ts'

/** Removes what a round that went well leaves behind: a campaign has thousands of partitions otherwise. */
export async function deleteTopics(brokers: string, prefix: string): Promise<void> {
  const admin = new library.kafkajs.Kafka({ brokers: brokers.split(','), logLevel: 0 }).admin()
  await admin.connect()
  try {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
    if (topics.length > 0) await admin.deleteTopics({ topics })
  } finally {
    await admin.disconnect()
  }
}
