import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { FetchedBatch, TopicPartition } from '../../src/core/record.ts'
import { KafkaClient, type KafkaOptions } from '../../src/kafka/client.ts'
import { createGroupConsumer } from '../../src/kafka/group-consumer.ts'
import type { GroupSettings } from '../../src/kafka/group-settings.ts'
import { library } from '../../src/kafka/load.ts'
import type { Fields, GroupConsumer, GroupConsumerOptions, GroupHandlers, Level, Observer } from '../../src/ports.ts'
import { realClock } from '../support/clock.ts'

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
export const key = ({ topic, partition }: TopicPartition) => `${topic}/${partition}`

/** Resolves once `fact` holds; rejects, naming it, when it does not within `ms`. */
export async function until(what: string, fact: () => boolean, ms = 15_000): Promise<void> {
  const end = performance.now() + ms
  while (!fact()) {
    if (performance.now() > end) throw new Error(`Waited ${ms} ms for: ${what}`)
    await sleep(5)
  }
}

export interface Line {
  readonly level: Level
  readonly name: string
  readonly fields: Fields
}

export class Recorder implements Observer {
  readonly lines: Line[] = []
  log(level: Level, name: string, fields: Fields = {}): void {
    this.lines.push({ level, name, fields })
  }
  count(): void {}
  time(): void {}
  named(name: string): Line[] {
    return this.lines.filter((line) => line.name === name)
  }
}

export interface Assigned {
  readonly gained: readonly TopicPartition[]
  readonly kept: readonly TopicPartition[]
  readonly lost: readonly TopicPartition[]
  readonly generation: number
}

/** A member with handlers that write down what happens. By default it seeks what it gained to 0 and resumes everything. */
export class Member implements GroupHandlers {
  readonly observer = new Recorder()
  readonly assigned: Assigned[] = []
  readonly batches: FetchedBatch[] = []
  readonly revoked: { deadlineMs: number; lost: boolean }[] = []
  readonly holes: (TopicPartition & { offset: number; nextOffset: number; reason: string })[] = []
  fatal: Error | undefined
  readonly consumer: GroupConsumer
  /** What the handlers do besides; replaceable. */
  assign: (info: Assigned) => void = ({ gained, kept }) => {
    for (const at of gained) this.consumer.seek(at, 0)
    this.consumer.resume([...gained, ...kept])
  }
  batch: (batch: FetchedBatch) => void = () => {}
  hole: (info: { offset: number; nextOffset: number }) => void = () => {}
  revoke: (info: { deadlineMs: number; lost: boolean }) => Promise<void> = async () => {}

  constructor(
    brokers: string,
    options: Partial<GroupConsumerOptions> & Pick<GroupConsumerOptions, 'group' | 'topics'>,
    settings: Partial<GroupSettings> = {},
    client: Partial<KafkaOptions> = {},
  ) {
    const deps = { clock: realClock, observer: this.observer }
    const kafka = new KafkaClient({ brokers: brokers.split(','), clientId: 'test', group: settings, ...client }, deps)
    this.consumer = createGroupConsumer(kafka, { assign: 'lanes', drainMs: 5000, ...options }, deps)
    onTestFinished(() => this.consumer.stop())
  }

  async start(): Promise<this> {
    await this.consumer.start(this)
    return this
  }

  get owned(): readonly TopicPartition[] {
    const last = this.assigned.at(-1)
    return last === undefined ? [] : [...last.gained, ...last.kept]
  }

  get values(): string[] {
    return this.batches.flatMap((batch) => batch.records.map((record) => String(record.value)))
  }

  async onRevoking(info: { deadlineMs: number; lost: boolean }): Promise<void> {
    this.revoked.push(info)
    await this.revoke(info)
  }
  onAssigned(info: Assigned): void {
    this.assigned.push(info)
    this.assign(info)
  }
  onBatch(batch: FetchedBatch): void {
    this.batches.push(batch)
    this.batch(batch)
  }
  onUndecodable(info: TopicPartition & { offset: number; nextOffset: number; reason: string }): void {
    this.holes.push(info)
    this.hole(info)
  }
  onFatal(error: Error): void {
    this.fatal = error
  }
}

/** Plain kafkajs, to make topics, write records and look at groups. */
export async function stock(brokers: string) {
  const kafka = new library.kafkajs.Kafka({ brokers: brokers.split(','), logLevel: 0 })
  const admin = kafka.admin()
  const producer = kafka.producer({ createPartitioner: library.kafkajs.Partitioners.DefaultPartitioner })
  await admin.connect()
  await producer.connect()
  return {
    kafka,
    kafkajs: library.kafkajs,
    socketFactory: library.socketFactory,
    admin,
    producer,
    async topic(numPartitions = 1, config: Record<string, string> = {}): Promise<string> {
      const topic = `t-${randomUUID().slice(0, 8)}`
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
      await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }], waitForLeaders: false })
      // Created is not yet known to the broker that serves it; a send before that is repeated by kafkajs, in parts.
      for (;;) {
        const offsets = await admin.fetchTopicOffsets(topic).catch(() => [])
        if (offsets.length === numPartitions) return topic
        await sleep(20)
      }
    },
    async send(topic: string, partition: number, ...values: string[]): Promise<void> {
      await producer.send({ topic, messages: values.map((value) => ({ partition, value })) })
    },
    async committed(group: string, topic: string): Promise<Record<number, string>> {
      const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
      return Object.fromEntries(found?.partitions.map((p) => [p.partition, p.offset]) ?? [])
    },
    async close(): Promise<void> {
      await producer.disconnect()
      await admin.disconnect()
    },
  }
}

export const newGroup = () => `g-${randomUUID().slice(0, 8)}`
