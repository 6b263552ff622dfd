import { describe } from 'vitest'
import { KafkaTopicAdmin } from '../../src/kafka/admin.ts'
import { KafkaClient, type KafkaOptions } from '../../src/kafka/client.ts'
import { createKafka } from '../../src/kafka/kafka.ts'
import type { Kafka, Observer } from '../../src/ports.ts'
import { testBroker } from '../support/broker.ts'
import { realClock } from '../support/clock.ts'
import { kafkaPortContract } from './kafka-port.ts'
import { out, readAll, until, type World } from './world.ts'

const observer: Observer = { log: () => {}, count: () => {}, time: () => {} }
const maxMessageBytes = 200_000
const sessionTimeoutMs = 6_000

async function realWorld(): Promise<World> {
  const { brokers } = await testBroker()
  const deps = { clock: realClock, observer }
  const options: KafkaOptions = {
    brokers: brokers.split(','),
    clientId: 'contract',
    group: { sessionMs: sessionTimeoutMs, heartbeatMs: 200, maxWaitMs: 50 },
  }
  const run = `${process.pid}-${Date.now().toString(36)}`
  const client = new KafkaClient(options, deps)
  const admin = new KafkaTopicAdmin(client)
  const closers: (() => Promise<unknown>)[] = [() => admin.close()]
  let names = 0
  let creating: Promise<unknown> = Promise.resolve()
  const unique = (name: string) => `contract-${run}-${name}-${++names}`
  const kafka = (): Kafka => {
    const made = createKafka(options, deps)
    closers.push(() => made.close())
    return made
  }
  return {
    clock: realClock,
    maxMessageBytes,
    sessionTimeoutMs,
    kafka,
    unique,
    async createTopic(name, { partitions, appendTime, compacted }) {
      const topic = unique(name)
      const configs: Record<string, string> = { 'max.message.bytes': String(maxMessageBytes) }
      if (appendTime === true) configs['message.timestamp.type'] = 'LogAppendTime'
      if (compacted === true) {
        configs['cleanup.policy'] = 'compact'
        configs['segment.ms'] = '100'
        configs['min.cleanable.dirty.ratio'] = '0.001'
      }
      creating = creating.then(() => admin.create([{ topic, partitions, replication: 1, configs }]))
      await creating
      return topic
    },
    async foreignTransaction({ topic, partition }, values) {
      const producer = client.kafka('admin').producer({ transactionalId: unique('foreign'), maxInFlightRequests: 1 })
      await producer.connect()
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: values.map((value) => ({ value, partition })) })
      const end = async (how: 'commit' | 'abort') => {
        await transaction[how]()
        await producer.disconnect()
      }
      return { commit: () => end('commit'), abort: () => end('abort') }
    },
    async compact(at) {
      const own = kafka()
      const reader = own.reader()
      const producer = own.producer()
      const before = (await readAll(reader, at)).records.length
      // A segment is cleaned once it is no longer the active one: the next record after segment.ms begins another.
      await until(
        realClock,
        'the cleaner came by',
        async () => {
          await producer.send([out(at, 'filler', 'filler')])
          const { records } = await readAll(reader, at)
          return records.filter((r) => r.key?.toString() !== 'filler').length < before
        },
        50_000,
        500,
      )
    },
    run: (body) => body(),
    async close() {
      for (const close of closers.reverse()) await close()
    },
  }
}

describe.concurrent('Kafka port on real Kafka', () => kafkaPortContract(realWorld))
