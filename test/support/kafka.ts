import { onTestFinished } from 'vitest'
import type { OutRecord } from '../../src/core/record.ts'
import { KafkaClient, type KafkaOptions } from '../../src/kafka/client.ts'
import { sleep } from '../../src/kafka/deadline.ts'
import { createKafka } from '../../src/kafka/kafka.ts'
import { library } from '../../src/kafka/load.ts'
import type { Kafka, Observer } from '../../src/ports.ts'
import { testBroker } from './broker.ts'
import { realClock } from './clock.ts'

export interface Noted {
  readonly name: string
  readonly fields: Record<string, unknown>
}

/** Remembers log lines, so that a test can wait for or look at them. */
export function notingObserver(): Observer & { readonly noted: Noted[] } {
  const noted: Noted[] = []
  return { noted, log: (_level, name, fields = {}) => noted.push({ name, fields }), count() {}, time() {} }
}

export async function testKafka(
  options: Partial<KafkaOptions> = {},
  observer: Observer = notingObserver(),
): Promise<Kafka> {
  const kafka = createKafka(
    { brokers: await addresses(), clientId: 'test', ...options },
    { clock: realClock, observer },
  )
  onTestFinished(() => kafka.close())
  return kafka
}

export async function testClient(options: Partial<KafkaOptions> = {}): Promise<KafkaClient> {
  return new KafkaClient(
    { brokers: await addresses(), clientId: 'test', ...options },
    { clock: realClock, observer: notingObserver() },
  )
}

let count = 0

export async function addresses(): Promise<string[]> {
  return (await testBroker()).brokers.split(',')
}

/** A topic of this test alone, with a leader for each partition. */
export async function testTopic(
  config: { partitions?: number; entries?: Record<string, string> } = {},
): Promise<string> {
  const topic = `t-${process.pid}-${Date.now().toString(36)}-${++count}`
  const partitions = config.partitions ?? 1
  const admin = new library.kafkajs.Kafka({ brokers: await addresses(), logLevel: 0 }).admin()
  await admin.connect()
  const configEntries = Object.entries(config.entries ?? {}).map(([name, value]) => ({ name, value }))
  // kafkajs waits for leaders too, but gives up at once in a test run: its retries are short where NODE_ENV is `test`.
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }], waitForLeaders: false })
  await admin.disconnect()
  const link = (await testClient()).link()
  try {
    for (;;) {
      const known = (await link.partitions([topic])).get(topic)
      if (known === partitions && (await link.leaders(topic)).every((leader) => leader >= 0)) return topic
      await sleep(realClock, 10)
    }
  } finally {
    link.close()
  }
}

export function record(topic: string, value: string | Buffer | null, more: Partial<OutRecord> = {}): OutRecord {
  return {
    topic,
    partition: 0,
    key: null,
    value: typeof value === 'string' ? Buffer.from(value) : value,
    headers: {},
    ...more,
  }
}

/**
 * All values of a partition as a read-committed reader finds them, from the start to the log's end. Waits while the end
 * is not stable: a commit is acknowledged before its markers are written.
 */
export async function valuesOf(kafka: Kafka, topic: string, partition = 0): Promise<string[]> {
  const reader = kafka.reader()
  try {
    const values: string[] = []
    for (let from = 0; ; ) {
      const batch = await reader.fetch({ topic, partition, from, maxWaitMs: from === 0 ? 0 : 50 })
      values.push(...batch.records.map(({ value }) => value?.toString() ?? 'null'))
      from = batch.nextOffset
      if (from >= batch.highWatermark) return values
    }
  } finally {
    await reader.close()
  }
}
