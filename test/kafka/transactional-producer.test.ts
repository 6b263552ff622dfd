import { beforeAll, describe, expect, it } from 'vitest'
import { createKafka } from '../../src/kafka/kafka.ts'
import type { Clock } from '../../src/ports.ts'
import { realClock } from '../support/clock.ts'
import { addresses, notingObserver, record, testKafka, testTopic, valuesOf } from '../support/kafka.ts'
import { stockKafkajs } from '../support/stock-kafkajs.ts'
import { api, tcpProxy } from '../support/tcp-proxy.ts'

async function throughProxy(options: object = {}) {
  const proxy = await tcpProxy((await addresses())[0] as string)
  const kafka = await testKafka({ brokers: [proxy.address], socketFactory: proxy.socketFactory, ...options })
  return { proxy, kafka }
}

// The first test must not pay for the broker's start.
beforeAll(async () => {
  await addresses()
})

describe('transactional producer', () => {
  it('writes records and offsets with metadata in one go; both come back', async () => {
    const topic = await testTopic({ partitions: 2 })
    const kafka = await testKafka()
    const lane = kafka.transactional(topic)
    await lane.fence()
    const metadata = 'm'.repeat(4096)
    const appended = await lane.transact({
      records: [record(topic, 'a'), record(topic, 'b', { partition: 1 }), record(topic, 'c')],
      group: topic,
      offsets: [
        { topic, partition: 0, offset: 7, metadata },
        { topic, partition: 1, offset: null, metadata: '' },
      ],
    })
    expect(appended.map(({ partition, firstOffset, count }) => [partition, firstOffset, count]).toSorted()).toEqual([
      [0, 0, 2],
      [1, 0, 1],
    ])
    expect(await valuesOf(kafka, topic)).toEqual(['a', 'c'])
    await expect
      .poll(
        () =>
          kafka.offsets.committed(topic, [
            { topic, partition: 0 },
            { topic, partition: 1 },
          ]),
        { timeout: 10_000 },
      )
      .toEqual([
        { topic, partition: 0, offset: 7, metadata },
        { topic, partition: 1, offset: null, metadata: '' },
      ])
  })

  it('takes records alone, offsets alone, nothing, and more than one batch can hold', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    const lane = kafka.transactional(topic)
    await lane.transact({ records: [record(topic, 'a')], group: topic, offsets: [] })
    for (let i = 1; i <= 5; i++)
      await lane.transact({ records: [], group: topic, offsets: [{ topic, partition: 0, offset: i, metadata: '' }] })
    expect(await lane.transact({ records: [], group: topic, offsets: [] })).toEqual([])
    const big = Array.from({ length: 25 }, (_, i) => record(topic, Buffer.alloc(100_000, 97 + i)))
    const appended = await lane.transact({
      records: big,
      group: topic,
      offsets: [{ topic, partition: 0, offset: 6, metadata: '' }],
    })
    expect(appended.length).toBeGreaterThan(2)
    expect(await valuesOf(kafka, topic)).toEqual(['a', ...big.map(({ value }) => value?.toString())])
    await expect
      .poll(() => kafka.offsets.committed(topic, [{ topic, partition: 0 }]), { timeout: 10_000 })
      .toMatchObject([{ offset: 6 }])
  })

  it('runs transactions back to back with waits of at most 20 ms; the stock defaults wait 300 ms (row 6)', async () => {
    const partitions = 30
    const topic = await testTopic({ partitions })
    const stock = stockKafkajs()<typeof import('kafkajs')>('')
    // Its defaults outside of a test run (it has others where NODE_ENV is `test`).
    const retry = { initialRetryTime: 300, multiplier: 2, factor: 0.2, maxRetryTime: 30_000, retries: 5 }
    const theirs = new stock.Kafka({ brokers: await addresses(), logLevel: 0, retry }).producer({
      transactionalId: `${topic}-stock`,
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition ?? 0,
    })
    await theirs.connect()
    // Whether a transaction comes before the markers of the last one are written is luck, so several times.
    let slowest = 0
    for (let i = 0; i < 100 && slowest < 230; i++) {
      const from = performance.now()
      const txn = await theirs.transaction()
      await txn.send({
        topic,
        messages: Array.from({ length: partitions }, (_, partition) => ({ partition, value: 'v' })),
      })
      await txn.commit()
      slowest = Math.max(slowest, performance.now() - from)
    }
    await theirs.disconnect()
    expect(slowest).toBeGreaterThanOrEqual(230)

    const waits: number[] = []
    const clock: Clock = {
      ...realClock,
      after: (ms, fn) => {
        if (ms < 5_000) waits.push(ms)
        return realClock.after(ms, fn)
      },
    }
    const kafka = createKafka({ brokers: await addresses(), clientId: 'test' }, { clock, observer: notingObserver() })
    const lane = kafka.transactional(topic)
    await lane.fence()
    const records = Array.from({ length: partitions }, (_, partition) => record(topic, 'v', { partition }))
    waits.length = 0
    for (let i = 0; i < 100 && waits.length === 0; i++) await lane.transact({ records, group: topic, offsets: [] })
    await kafka.close()
    expect(waits.length).toBeGreaterThan(0)
    expect(Math.max(...waits)).toBeLessThanOrEqual(20)
  })

  it('offsets as the first call of a transaction wait for the one before; the stock library rejects them (row 6)', async () => {
    const partitions = 30
    const topic = await testTopic({ partitions })
    const stock = stockKafkajs()<typeof import('kafkajs')>('')
    const theirs = new stock.Kafka({ brokers: await addresses(), logLevel: 0 }).producer({
      transactionalId: topic,
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition ?? 0,
    })
    await theirs.connect()
    const failures: string[] = []
    // The markers of many partitions take the broker a moment; whether we come in time is luck, so several times.
    for (let i = 0; i < 100 && failures.length === 0; i++) {
      const wide = await theirs.transaction()
      await wide.send({
        topic,
        messages: Array.from({ length: partitions }, (_, partition) => ({ partition, value: 'v' })),
      })
      await wide.commit()
      const next = await theirs.transaction()
      await next
        .sendOffsets({ consumerGroupId: topic, topics: [{ topic, partitions: [{ partition: 0, offset: '1' }] }] })
        .catch((error) => failures.push(error.type))
      await next.abort()
    }
    await theirs.disconnect()
    expect(failures).toEqual(['CONCURRENT_TRANSACTIONS'])

    const lane = (await testKafka()).transactional(`${topic}-ours`)
    const wide = Array.from({ length: partitions }, (_, partition) => record(topic, 'v', { partition }))
    for (let i = 0; i < 10; i++) {
      await lane.transact({ records: wide, group: topic, offsets: [] })
      await lane.transact({ records: [], group: topic, offsets: [{ topic, partition: 0, offset: i, metadata: '' }] })
    }
  })

  it('a second owner fences the first, whose next transaction writes nothing and leaves it dead', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    const [old, next] = [kafka.transactional(topic), kafka.transactional(topic)]
    await old.transact({ records: [record(topic, 'old')], group: topic, offsets: [] })
    await next.fence()
    const late = {
      records: [record(topic, 'late')],
      group: topic,
      offsets: [{ topic, partition: 0, offset: 99, metadata: '' }],
    }
    await expect(old.transact(late)).rejects.toMatchObject({
      code: 'producer.fenced',
      message: expect.stringContaining(topic),
    })
    await expect(old.transact(late)).rejects.toMatchObject({ code: 'producer.closed' })
    await next.transact({ records: [record(topic, 'next')], group: topic, offsets: [] })
    expect(await valuesOf(kafka, topic)).toEqual(['old', 'next'])
    expect(await kafka.offsets.committed(topic, [{ topic, partition: 0 }])).toMatchObject([{ offset: null }])
  })

  it('fencing decides what the former owner left open: it is aborted, and its offsets never show (row 15)', async () => {
    const topic = await testTopic()
    const { proxy, kafka } = await throughProxy({ deadlineMs: 20_000 })
    const direct = await testKafka()
    const old = kafka.transactional(topic)
    await old.fence()
    const held = proxy.holdResponse(api.txnOffsetCommit)
    const hanging = old
      .transact({
        records: [record(topic, 'open')],
        group: topic,
        offsets: [{ topic, partition: 0, offset: 5, metadata: '' }],
      })
      .catch((error) => error)
    await held.held
    const next = direct.transactional(topic)
    await next.fence()
    expect(await direct.offsets.committed(topic, [{ topic, partition: 0 }])).toMatchObject([{ offset: null }])
    expect(await valuesOf(direct, topic)).toEqual([])
    held.release()
    expect(await hanging).toMatchObject({ code: 'producer.fenced' })
    await next.transact({ records: [record(topic, 'next')], group: topic, offsets: [] })
    expect(await valuesOf(direct, topic)).toEqual(['next'])
  })

  it('a record too large aborts the whole transaction: nothing is written, the offset does not move', async () => {
    const topic = await testTopic({ partitions: 2 })
    const kafka = await testKafka()
    const lane = kafka.transactional(topic)
    const records = [record(topic, 'small'), record(topic, Buffer.alloc(2_000_000), { partition: 1 })]
    await expect(
      lane.transact({ records, group: topic, offsets: [{ topic, partition: 0, offset: 3, metadata: '' }] }),
    ).rejects.toMatchObject({
      code: 'record.too-large',
      message: expect.stringContaining(topic),
    })
    expect(await valuesOf(kafka, topic)).toEqual([])
    const again = kafka.transactional(topic)
    await again.fence()
    expect(await kafka.offsets.committed(topic, [{ topic, partition: 0 }])).toMatchObject([{ offset: null }])
    await again.transact({ records: [record(topic, 'small')], group: topic, offsets: [] })
    expect(await valuesOf(kafka, topic)).toEqual(['small'])
  })

  it('a lost answer to EndTxn is asked for again and commits once (adversarial 5)', async () => {
    const topic = await testTopic()
    const { proxy, kafka } = await throughProxy()
    const lane = kafka.transactional(topic)
    await lane.fence()
    const dropped = proxy.dropResponse(api.endTxn, 'cut')
    const done = lane.transact({
      records: [record(topic, 'once')],
      group: topic,
      offsets: [{ topic, partition: 0, offset: 1, metadata: 'x' }],
    })
    await dropped
    await done
    await lane.transact({
      records: [record(topic, 'twice')],
      group: topic,
      offsets: [{ topic, partition: 0, offset: 2, metadata: 'y' }],
    })
    const direct = await testKafka()
    expect(await valuesOf(direct, topic)).toEqual(['once', 'twice'])
    await expect
      .poll(() => direct.offsets.committed(topic, [{ topic, partition: 0 }]), { timeout: 10_000 })
      .toEqual([{ topic, partition: 0, offset: 2, metadata: 'y' }])
  })

  it('an EndTxn without any answer is "unknown": the next owner reads what became of it (row 7)', async () => {
    const topic = await testTopic()
    const { proxy, kafka } = await throughProxy({ deadlineMs: 1_000 })
    const lane = kafka.transactional(topic)
    await lane.fence()
    void proxy.dropResponse(api.endTxn, 'hang')
    const transaction = {
      records: [record(topic, 'once')],
      group: topic,
      offsets: [{ topic, partition: 0, offset: 1, metadata: 'x' }],
    }
    await expect(lane.transact(transaction)).rejects.toMatchObject({ code: 'producer.failed', retry: true })
    const direct = await testKafka()
    const next = direct.transactional(topic)
    await next.fence()
    await expect
      .poll(() => direct.offsets.committed(topic, [{ topic, partition: 0 }]), { timeout: 10_000 })
      .toMatchObject([{ offset: 1, metadata: 'x' }])
    expect(await valuesOf(direct, topic)).toEqual(['once'])
  })

  it.each([
    ['Produce', api.produce],
    ['AddPartitionsToTxn', api.addPartitions],
    ['AddOffsetsToTxn', api.addOffsets],
    ['TxnOffsetCommit', api.txnOffsetCommit],
  ])('a lost answer to %s costs nothing', async (_name, apiKey) => {
    const topic = await testTopic()
    const { proxy, kafka } = await throughProxy()
    const lane = kafka.transactional(topic)
    await lane.transact({ records: [record(topic, 'a')], group: topic, offsets: [] })
    const dropped = proxy.dropResponse(apiKey, 'cut')
    const done = lane.transact({
      records: [record(topic, 'b')],
      group: topic,
      offsets: [{ topic, partition: 0, offset: 1, metadata: '' }],
    })
    await dropped
    await done
    const direct = await testKafka()
    expect(await valuesOf(direct, topic)).toEqual(['a', 'b'])
    await expect
      .poll(() => direct.offsets.committed(topic, [{ topic, partition: 0 }]), { timeout: 10_000 })
      .toMatchObject([{ offset: 1 }])
  })

  it('a missing topic is named, and the id can be used again by a new producer', async () => {
    const topic = await testTopic()
    const kafka = await testKafka({ deadlineMs: 1_500 })
    const lane = kafka.transactional(topic)
    await expect(
      lane.transact({ records: [record(`${topic}-no`, 'v')], group: topic, offsets: [] }),
    ).rejects.toMatchObject({
      code: 'topic.missing',
      message: expect.stringContaining(`${topic}-no`),
    })
    await kafka.transactional(topic).transact({ records: [record(topic, 'v')], group: topic, offsets: [] })
    expect(await valuesOf(kafka, topic)).toEqual(['v'])
  })
})
