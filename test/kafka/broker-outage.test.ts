import { expect, it } from 'vitest'
import { KafkaClient } from '../../src/kafka/client.ts'
import { createKafka } from '../../src/kafka/kafka.ts'
import { ownBroker } from '../support/broker.ts'
import { realClock } from '../support/clock.ts'
import { notingObserver, record, valuesOf } from '../support/kafka.ts'

it('a broker that is killed and comes back, or is frozen, costs time and nothing else: sends, transactions, reads go on', async () => {
  const broker = await ownBroker()
  const options = {
    brokers: broker.brokers.split(','),
    clientId: 'test',
    requestTimeoutMs: 2_000,
    connectTimeoutMs: 1_000,
    deadlineMs: 60_000,
  }
  const observer = notingObserver()
  const deps = { clock: realClock, observer }
  const kafka = createKafka(options, deps)
  const topic = 'outage'
  const admin = new KafkaClient(options, deps).kafka('admin').admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 3 }], waitForLeaders: true })
  await admin.disconnect()
  const producer = kafka.producer()
  const lane = kafka.transactional('lane')
  const reader = kafka.reader()
  const sent: string[] = []
  const settled: string[] = []
  const read: string[] = []
  let count = 0
  const pump = { on: true }
  const loops = [
    (async () => {
      while (pump.on) {
        const value = `p${count++}`
        await producer.send([record(topic, value)])
        sent.push(value)
      }
    })(),
    (async () => {
      for (let i = 0; pump.on; i++) {
        await lane.transact({
          records: [record(topic, `t${i}`, { partition: 1 })],
          group: 'g',
          offsets: [{ topic, partition: 2, offset: i, metadata: String(i) }],
        })
        settled.push(`t${i}`)
      }
    })(),
    (async () => {
      for (let from = 0; pump.on; ) {
        const batch = await reader.fetch({ topic, partition: 0, from, maxWaitMs: 200 })
        read.push(...batch.records.map(({ value }) => String(value)))
        from = batch.nextOffset
      }
    })(),
  ]
  const progress = async () => {
    const before = [sent.length, settled.length, read.length]
    while ([sent.length, settled.length, read.length].some((n, i) => n < (before[i] as number) + 5)) {
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 20)), ...loops])
    }
  }
  await progress()
  await broker.kill()
  await broker.restart()
  await progress()
  // Dozens of failed connections of six sockets: one line when it went, one when it was back.
  expect(observer.noted.filter(({ name }) => name === 'broker.unreachable')).toMatchObject([
    { fields: { broker: broker.brokers, reason: expect.stringContaining('Connection'), remedy: expect.any(String) } },
  ])
  const back = observer.noted.filter(({ name }) => name === 'broker.reached')
  expect(back).toMatchObject([{ fields: { broker: broker.brokers } }])
  expect(back[0]?.fields.tries).toBeGreaterThan(1)
  expect(back[0]?.fields.afterMs).toBeGreaterThan(0)
  broker.pause()
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  broker.resume()
  await progress()
  pump.on = false
  await Promise.all(loops)
  expect(await valuesOf(kafka, topic, 0)).toEqual(sent)
  expect(await valuesOf(kafka, topic, 1)).toEqual(settled)
  expect(read).toEqual(sent.slice(0, read.length))
  await expect
    .poll(() => kafka.offsets.committed('g', [{ topic, partition: 2 }]), { timeout: 10_000 })
    .toMatchObject([{ offset: settled.length - 1, metadata: String(settled.length - 1) }])
  await kafka.close()
}, 120_000)
