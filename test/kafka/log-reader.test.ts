import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { FetchedBatch } from '../../src/core/record.ts'
import { codecs, decodeLimit } from '../../src/kafka/codecs.ts'
import { library } from '../../src/kafka/load.ts'
import type { LogReader } from '../../src/ports.ts'
import { addresses, notingObserver, record, testKafka, testTopic, valuesOf } from '../support/kafka.ts'
import { api, tcpProxy } from '../support/tcp-proxy.ts'

async function readAll(reader: LogReader, topic: string, maxBytes?: number): Promise<FetchedBatch[]> {
  const end = (await reader.ends(topic, [0])).get(0) ?? 0
  const batches: FetchedBatch[] = []
  for (let from = 0; from < end; from = batches.at(-1)?.nextOffset ?? end) {
    const batch = await reader.fetch({ topic, partition: 0, from, ...(maxBytes === undefined ? {} : { maxBytes }) })
    expect(batch.nextOffset).toBeGreaterThan(from)
    batches.push(batch)
  }
  return batches
}

// The first test must not pay for the broker's start.
beforeAll(async () => {
  await addresses()
})

describe('log reader', () => {
  it('tells starts and ends of all partitions or of those asked for, and refuses a missing topic by name', async () => {
    const topic = await testTopic({ partitions: 3 })
    const kafka = await testKafka()
    await kafka.producer().send([record(topic, 'a', { partition: 1 }), record(topic, 'b', { partition: 1 })])
    const reader = kafka.reader()
    expect([...(await reader.ends(topic))].toSorted()).toEqual([
      [0, 0],
      [1, 2],
      [2, 0],
    ])
    expect([...(await reader.ends(topic, [1]))]).toEqual([[1, 2]])
    expect([...(await reader.starts(topic, [1, 2]))].toSorted()).toEqual([
      [1, 0],
      [2, 0],
    ])
    const impatient = (await testKafka({ deadlineMs: 2_000 })).reader()
    await expect(impatient.ends(`${topic}-no`)).rejects.toMatchObject({
      code: 'topic.missing',
      message: expect.stringContaining(`${topic}-no`),
    })
    await expect(impatient.fetch({ topic, partition: 9, from: 0 })).rejects.toMatchObject({ code: 'topic.missing' })
  })

  it('hands out key, value, headers and time as written, tombstones and null keys included', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    const headers = { constructor: Buffer.from('x'), empty: Buffer.alloc(0) }
    await kafka
      .producer()
      .send([
        record(topic, 'v', { key: 'k', headers }),
        record(topic, null, { key: Buffer.from('t') }),
        record(topic, ''),
      ])
    const [batch] = await readAll(kafka.reader(), topic)
    expect(batch?.records.map(({ offset, key, value }) => [offset, key?.toString(), value?.toString()])).toEqual([
      [0, 'k', 'v'],
      [1, 't', undefined],
      [2, undefined, ''],
    ])
    expect({ ...batch?.records[0]?.headers }).toEqual(headers)
    expect(Math.abs((batch?.records[0]?.timestampMs ?? 0) - Date.now())).toBeLessThan(60_000)
    expect(batch).toMatchObject({ nextOffset: 3, highWatermark: 3 })
  })

  it('counts control and aborted records as passed: the position reaches the end, in small fetches too (adversarial 2)', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    for (let i = 0; i < 3; i++) {
      await kafka.transactional(topic).transact({ records: [record(topic, `v${i}`)], group: topic, offsets: [] })
      const failing = kafka.transactional(`${topic}-f`)
      await failing
        .transact({
          records: [record(topic, 'aborted'), record(topic, Buffer.alloc(2_000_000))],
          group: topic,
          offsets: [],
        })
        .catch(() => {})
    }
    await valuesOf(kafka, topic)
    const reader = kafka.reader()
    const end = (await reader.ends(topic)).get(0)
    for (const maxBytes of [100, 1_000_000]) {
      const batches = await readAll(reader, topic, maxBytes)
      expect(batches.flatMap(({ records }) => records.map(({ value }) => value?.toString()))).toEqual([
        'v0',
        'v1',
        'v2',
      ])
      expect(batches.at(-1)?.nextOffset).toBe(end)
    }
  })

  it('ends at the last stable offset while a transaction is open', async () => {
    const topic = await testTopic()
    const proxy = await tcpProxy((await addresses())[0] as string)
    const through = await testKafka({ brokers: [proxy.address], socketFactory: proxy.socketFactory })
    const kafka = await testKafka()
    await kafka.producer().send([record(topic, 'before')])
    const held = proxy.holdResponse(api.produce)
    const open = through.transactional(topic).transact({ records: [record(topic, 'open')], group: topic, offsets: [] })
    await held.held
    await kafka.producer().send([record(topic, 'behind')])
    const reader = kafka.reader()
    expect((await reader.ends(topic)).get(0)).toBe(1)
    const [shown] = await readAll(reader, topic)
    expect(shown?.records.map(({ value }) => String(value))).toEqual(['before'])
    expect(await reader.fetch({ topic, partition: 0, from: 1 })).toMatchObject({
      records: [],
      nextOffset: 1,
      highWatermark: 3,
    })
    held.release()
    await open
    expect(await valuesOf(kafka, topic)).toEqual(['before', 'open', 'behind'])
  })

  it('continues at the log start when retention has passed it, and rejects a position beyond the end', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    await kafka.producer().send(['a', 'b', 'c'].map((v) => record(topic, v)))
    const admin = new library.kafkajs.Kafka({ brokers: await addresses(), logLevel: 0 }).admin()
    await admin.connect()
    await admin.fetchTopicMetadata({ topics: [topic] })
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '2' }] })
    await admin.disconnect()
    const reader = kafka.reader()
    expect((await reader.starts(topic)).get(0)).toBe(2)
    const batch = await reader.fetch({ topic, partition: 0, from: 0 })
    expect([batch.records.map(({ offset }) => offset), batch.nextOffset]).toEqual([[2], 3])
    await expect(reader.fetch({ topic, partition: 0, from: 1_000 })).rejects.toMatchObject({ code: 'internal' })
    expect(await reader.fetch({ topic, partition: 0, from: 3 })).toMatchObject({ records: [], nextOffset: 3 })
  })

  it('never takes a batch above maxBytes for an empty log, also when partitions share a request', async () => {
    const topic = await testTopic({ partitions: 3 })
    const kafka = await testKafka()
    const value = 'x'.repeat(300_000)
    for (const partition of [0, 1, 2]) {
      await kafka.producer().send([record(topic, value, { partition }), record(topic, `${partition}`, { partition })])
    }
    const reader = kafka.reader()
    const batches = await Promise.all(
      [0, 1, 2].map((partition) => reader.fetch({ topic, partition, from: 0, maxBytes: 20_000, maxWaitMs: 100 })),
    )
    expect(batches.map(({ records, nextOffset }) => [records.length, nextOffset])).toEqual([
      [2, 2],
      [2, 2],
      [2, 2],
    ])
  })

  it('waits up to maxWaitMs for something new, on many partitions side by side', async () => {
    const partitions = 8
    const topic = await testTopic({ partitions })
    const kafka = await testKafka()
    const reader = kafka.reader()
    const from = performance.now()
    const waits = Array.from({ length: partitions }, (_, partition) =>
      reader.fetch({ topic, partition, from: 0, maxWaitMs: 10_000 }),
    )
    await reader.fetch({ topic, partition: 0, from: 0, maxWaitMs: 150 })
    expect(performance.now() - from).toBeGreaterThanOrEqual(145)
    // A fetch that wants an answer at once is not behind the long polls.
    const quick = performance.now()
    await reader.fetch({ topic, partition: 0, from: 0 })
    expect(performance.now() - quick).toBeLessThan(1_000)
    const producer = kafka.producer()
    await producer.send(waits.map((_, partition) => record(topic, `v${partition}`, { partition })))
    const got = await Promise.all(waits)
    expect(got.map(({ records }) => records[0]?.value?.toString())).toEqual(waits.map((_, p) => `v${p}`))
    expect(performance.now() - from).toBeLessThan(9_000)
  })

  it.each(Object.entries(codecs).map(([type, { name }]) => [name, Number(type)] as const))(
    'reads what a foreign producer sent as %s, and skips a bomb with its reason (row 5)',
    async (name, type) => {
      const topic = await testTopic()
      const observer = notingObserver()
      const kafka = await testKafka({}, observer)
      const producer = new library.kafkajs.Kafka({ brokers: await addresses(), logLevel: 0 }).producer({
        createPartitioner: () => () => 0,
      })
      await producer.connect()
      const send = (values: (string | Buffer)[]) =>
        producer.send({ topic, compression: type, messages: values.map((value) => ({ value })) })
      await send(['a', Buffer.alloc(600_000, 'b')])
      const before = decodeLimit.maxBytes
      onTestFinished(() => {
        decodeLimit.maxBytes = before
      })
      const limit = 2 ** 20
      decodeLimit.maxBytes = limit
      const bomb = Buffer.alloc(limit / 4)
      await send([bomb, bomb, bomb, bomb])
      await send(['after'])
      await producer.disconnect()
      const batches = await readAll(kafka.reader(), topic)
      expect(batches.flatMap(({ records }) => records.map(({ value }) => value?.length))).toEqual([1, 600_000, 5])
      expect(batches.flatMap((batch) => batch.undecodable ?? [])).toEqual([
        { offset: 2, nextOffset: 6, reason: `${name}: unpacks to more than ${limit} bytes` },
      ])
      expect(observer.noted.filter((line) => line.name === 'kafka.undecodable')).toHaveLength(1)
    },
  )

  it('passes over what compaction has removed, the end of the log included', async () => {
    const entries = {
      'cleanup.policy': 'compact',
      'segment.ms': '100',
      'min.cleanable.dirty.ratio': '0.0',
      'max.compaction.lag.ms': '100',
      'delete.retention.ms': '0',
      'segment.bytes': '1048576',
    }
    const topic = await testTopic({ entries })
    const kafka = await testKafka()
    const producer = kafka.producer()
    for (let i = 0; i < 20; i++) await producer.send([record(topic, `v${i}`, { key: 'same' })])
    await producer.send([record(topic, 'last', { key: 'other' })])
    const reader = kafka.reader()
    const batches = await readAll(reader, topic)
    expect(batches.at(-1)?.nextOffset).toBe(21)
    // From the middle of a gap on: `from` inside of what may be gone by now.
    const middle = await reader.fetch({ topic, partition: 0, from: 10 })
    expect(middle.records.every(({ offset }) => offset >= 10)).toBe(true)
    expect(middle.nextOffset).toBeGreaterThan(10)
  })

  it('rides out a lost connection and a lost answer', async () => {
    const topic = await testTopic()
    const proxy = await tcpProxy((await addresses())[0] as string)
    const kafka = await testKafka({ brokers: [proxy.address], socketFactory: proxy.socketFactory })
    await kafka.producer().send([record(topic, 'a')])
    const reader = kafka.reader()
    expect((await reader.fetch({ topic, partition: 0, from: 0 })).records).toHaveLength(1)
    void proxy.dropResponse(api.fetch, 'cut')
    expect((await reader.fetch({ topic, partition: 0, from: 0 })).records).toHaveLength(1)
    proxy.cutAll()
    expect((await reader.ends(topic)).get(0)).toBe(1)
  })
})
