import { beforeAll, describe, expect, it } from 'vitest'
import { addresses, notingObserver, record, testKafka, testTopic, valuesOf } from '../support/kafka.ts'
import { stockKafkajs } from '../support/stock-kafkajs.ts'
import { api, type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts'

async function throughProxy(options: object = {}) {
  const proxy = await tcpProxy((await addresses())[0] as string)
  const kafka = await testKafka({ brokers: [proxy.address], socketFactory: proxy.socketFactory, ...options })
  return { proxy, kafka }
}

// The first test must not pay for the broker's start.
beforeAll(async () => {
  await addresses()
})

describe('plain producer', () => {
  it('resolves with first offsets per partition and keeps the order given', async () => {
    const topic = await testTopic({ partitions: 2 })
    const kafka = await testKafka()
    const producer = kafka.producer()
    const records = Array.from({ length: 6 }, (_, i) => record(topic, `v${i}`, { partition: i % 2 }))
    expect((await producer.send(records)).toSorted((a, b) => a.partition - b.partition)).toEqual([
      { topic, partition: 0, firstOffset: 0, count: 3, appendTimeMs: null },
      { topic, partition: 1, firstOffset: 0, count: 3, appendTimeMs: null },
    ])
    expect(await producer.send([record(topic, 'v6')])).toMatchObject([{ firstOffset: 3, count: 1 }])
    expect(await valuesOf(kafka, topic)).toEqual(['v0', 'v2', 'v4', 'v6'])
    expect(await producer.send([])).toEqual([])
  })

  it('gives the append time of a LogAppendTime topic', async () => {
    const topic = await testTopic({ entries: { 'message.timestamp.type': 'LogAppendTime' } })
    const kafka = await testKafka()
    const before = Date.now()
    const [appended] = await kafka.producer().send([record(topic, 'v')])
    expect(appended?.appendTimeMs).toBeGreaterThanOrEqual(before - 1000)
    const batch = await kafka.reader().fetch({ topic, partition: 0, from: 0 })
    expect(batch.records[0]?.timestampMs).toBe(appended?.appendTimeMs)
  })

  it('batches concurrent sends into few requests and tells each its own offsets (row 14: no linger in the library)', async () => {
    const topic = await testTopic()
    const { proxy, kafka } = await throughProxy()
    const producer = kafka.producer()
    await producer.send([record(topic, 'first')])
    const before = proxy.seen.get(api.produce) ?? 0
    const all = await Promise.all(
      Array.from({ length: 200 }, (_, i) => producer.send([record(topic, `a${i}`), record(topic, `b${i}`)])),
    )
    expect((proxy.seen.get(api.produce) ?? 0) - before).toBeLessThan(10)
    const values = await valuesOf(kafka, topic)
    all.forEach((appended, i) => {
      expect(appended).toHaveLength(1)
      expect(appended[0]?.count).toBe(2)
      expect(values.slice(appended[0]?.firstOffset, (appended[0]?.firstOffset ?? 0) + 2)).toEqual([`a${i}`, `b${i}`])
    })
  })

  it('splits by bytes what the stock library sends as one batch that the broker refuses (row 14)', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    const records = Array.from({ length: 30 }, (_, i) => record(topic, Buffer.alloc(100_000, i)))
    const appended = await kafka.producer().send(records)
    expect(appended.reduce((sum, { count }) => sum + count, 0)).toBe(30)
    expect(await valuesOf(kafka, topic)).toEqual(records.map(({ value }) => value?.toString()))

    const stock = stockKafkajs()<typeof import('kafkajs')>('')
    const other = new stock.Kafka({ brokers: await addresses(), logLevel: 0 }).producer({
      createPartitioner: () => () => 0,
    })
    await other.connect()
    const messages = records.map(({ value }) => ({ value }))
    await expect(other.send({ topic, messages })).rejects.toMatchObject({ type: 'MESSAGE_TOO_LARGE' })
    await other.disconnect()
  })

  it('halves a batch for a topic with a smaller limit, and rejects only the sender of the record that is too large', async () => {
    const topic = await testTopic({ entries: { 'max.message.bytes': '50000' } })
    const kafka = await testKafka()
    const producer = kafka.producer()
    const small = Array.from({ length: 20 }, (_, i) => record(topic, Buffer.alloc(10_000, 97 + i)))
    await producer.send(small)
    expect(await valuesOf(kafka, topic)).toEqual(small.map(({ value }) => value?.toString()))
    const [large, innocent] = await Promise.allSettled([
      producer.send([record(topic, Buffer.alloc(60_000))]),
      producer.send([record(topic, 'innocent')]),
    ])
    expect(large).toMatchObject({
      status: 'rejected',
      reason: { code: 'record.too-large', message: expect.stringContaining(topic) },
    })
    expect(innocent.status === 'fulfilled' || innocent.reason.retry).toBe(true)
    await expect(producer.send([record(topic, 'again')])).resolves.toHaveLength(1)
  })

  it('rejects a missing topic by name, then works on', async () => {
    const topic = await testTopic()
    const kafka = await testKafka({ deadlineMs: 1_500 })
    const producer = kafka.producer()
    await expect(producer.send([record(`${topic}-missing`, 'v')])).rejects.toMatchObject({
      code: 'topic.missing',
      message: expect.stringContaining(`${topic}-missing`),
    })
    await expect(producer.send([record(topic, 'v')])).resolves.toHaveLength(1)
  })

  it('writes a record once when the answer to it is lost, without the sender noticing', async () => {
    const topic = await testTopic()
    const { proxy, kafka } = await throughProxy()
    const producer = kafka.producer()
    await producer.send([record(topic, 'm1')])
    const dropped = proxy.dropResponse(api.produce, 'cut')
    const sent = producer.send([record(topic, 'm2')])
    await dropped
    await expect(sent).resolves.toMatchObject([{ firstOffset: 1, count: 1 }])
    await producer.send([record(topic, 'm3')])
    expect(await valuesOf(await testKafka(), topic)).toEqual(['m1', 'm2', 'm3'])
  })

  it('loses no acknowledged record after a send that failed though it had landed; the stock library does (row 2)', async () => {
    const topic = await testTopic({ partitions: 2 })
    const { proxy, kafka } = await throughProxy({ deadlineMs: 1_000 })
    const producer = kafka.producer()
    const stock = stockKafkajs()<typeof import('kafkajs')>('')
    const theirProxy = await tcpProxy((await addresses())[0] as string)
    const theirs = new stock.Kafka({
      brokers: [theirProxy.address],
      socketFactory: theirProxy.socketFactory,
      logLevel: 0,
      retry: { retries: 1, initialRetryTime: 50 },
    }).producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner: () => () => 1 })
    await theirs.connect()
    const run = async (through: TcpProxy, send: (value: string) => Promise<unknown>) => {
      const acked: string[] = []
      const attempt = (value: string) =>
        send(value).then(
          () => acked.push(value),
          () => {},
        )
      await attempt('m1')
      await attempt('m2')
      const dropped = through.dropResponse(api.produce, 'cut')
      const m3 = attempt('m3')
      through.refuse = true
      await dropped
      through.cutAll()
      await m3
      expect(acked).not.toContain('m3')
      through.refuse = false
      await attempt('m4')
      await attempt('m5')
      return acked
    }
    const ours = await run(proxy, (value) => producer.send([record(topic, value)]))
    expect(ours).toEqual(['m1', 'm2', 'm4', 'm5'])
    const direct = await testKafka()
    expect(await valuesOf(direct, topic, 0)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5'])

    const stockAcked = await run(theirProxy, (value) => theirs.send({ topic, messages: [{ value }] }))
    expect(stockAcked).toContain('m4')
    expect(await valuesOf(direct, topic, 1)).not.toContain('m4')
    await theirs.disconnect()
  })

  it('a failed send fails what is queued behind it, and the next one finds a fresh producer (row 7)', async () => {
    const topic = await testTopic()
    const observer = notingObserver()
    const proxy = await tcpProxy((await addresses())[0] as string)
    const kafka = await testKafka(
      { brokers: [proxy.address], socketFactory: proxy.socketFactory, deadlineMs: 800 },
      observer,
    )
    const producer = kafka.producer()
    await producer.send([record(topic, 'm1')])
    const dropped = proxy.dropResponse(api.produce, 'hang')
    const first = producer.send([record(topic, 'm2')]).catch((error) => error)
    await dropped
    const queued = producer.send([record(topic, 'm3')]).catch((error) => error)
    expect(await first).toMatchObject({ code: 'producer.failed', retry: true })
    expect(await queued).toMatchObject({
      code: 'producer.failed',
      message: expect.stringContaining('An earlier send failed'),
    })
    await producer.send([record(topic, 'm4')])
    expect(observer.noted.map(({ name }) => name)).toContain('producer.recreated')
    expect(await valuesOf(await testKafka(), topic)).toEqual(['m1', 'm2', 'm4'])
  })

  it('has a deadline of its own where the broker is silent (row 16)', async () => {
    const topic = await testTopic()
    const { proxy, kafka } = await throughProxy({ deadlineMs: 500 })
    const producer = kafka.producer()
    await producer.send([record(topic, 'm1')])
    void proxy.dropResponse(api.produce, 'hang')
    const from = performance.now()
    await expect(producer.send([record(topic, 'm2')])).rejects.toMatchObject({ code: 'producer.failed' })
    expect(performance.now() - from).toBeLessThan(3_000)
  })

  it('a broker that is down is broker trouble with a remedy, within the deadline', async () => {
    const kafka = await testKafka({ brokers: ['127.0.0.1:1'], deadlineMs: 300 })
    await expect(kafka.partitions(['t'])).rejects.toMatchObject({
      code: 'broker.unavailable',
      remedy: expect.stringContaining('brokers'),
    })
    await expect(kafka.producer().send([record('t', 'v')])).rejects.toMatchObject({
      code: 'producer.failed',
      retry: true,
    })
  })

  it('close waits for what is queued and refuses the rest; closing twice is fine', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    const producer = kafka.producer()
    const sent = producer.send([record(topic, 'v')])
    const closed = producer.close()
    await expect(producer.send([record(topic, 'w')])).rejects.toMatchObject({ code: 'producer.closed' })
    await expect(sent).resolves.toHaveLength(1)
    await closed
    await producer.close()
  })
})
