import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decodeLimit } from '../../src/kafka/codecs.ts'
import { testBroker } from '../support/broker.ts'
import { Member, newGroup, sleep, stock, until } from './group-support.ts'

let brokers: string
let tools: Awaited<ReturnType<typeof stock>>
beforeAll(async () => {
  ;({ brokers } = await testBroker())
  tools = await stock(brokers)
})
afterAll(() => tools.close())

const consumed = (member: Member, partition = 0) =>
  member.batches.filter((b) => b.partition === partition).at(-1)?.nextOffset ?? 0

describe('reading', () => {
  test('what is written arrives in order, with next offset and log end', async () => {
    const topic = await tools.topic(2)
    await tools.send(topic, 0, 'a', 'b')
    const member = await new Member(brokers, { group: newGroup(), topics: [topic] }).start()
    await until('two records', () => member.values.length === 2)
    await tools.send(topic, 1, 'c')
    await until('third record', () => member.values.length === 3)
    expect(member.values).toEqual(['a', 'b', 'c'])
    expect(member.batches.at(-1)).toMatchObject({ topic, partition: 1, nextOffset: 1, highWatermark: 1 })
  })

  test('a batch of nothing but aborted records and markers still moves the next offset to the log end', async () => {
    const topic = await tools.topic(1)
    const producer = tools.kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
    await producer.connect()
    const member = await new Member(brokers, { group: newGroup(), topics: [topic] }).start()
    const aborted = await producer.transaction()
    await aborted.send({ topic, messages: [{ partition: 0, value: 'never' }] })
    await aborted.abort()
    await until('the gap', () => consumed(member) === 2)
    const committed = await producer.transaction()
    await committed.send({ topic, messages: [{ partition: 0, value: 'seen' }] })
    await committed.commit()
    await until('the marker behind the record', () => consumed(member) === 4)
    await producer.disconnect()
    expect(member.values).toEqual(['seen'])
    expect(member.batches.at(-1)?.highWatermark).toBe(4)
  })

  test('a batch that cannot be decoded is reported as a hole, in its place among the others', async () => {
    const topic = await tools.topic(1)
    const before = decodeLimit.maxBytes
    decodeLimit.maxBytes = 1000
    try {
      const bomb = { partition: 0, value: Buffer.alloc(20_000) }
      const compression = tools.kafkajs.CompressionTypes.GZIP
      await tools.send(topic, 0, 'a')
      await tools.producer.send({ topic, compression, messages: [bomb, bomb] })
      await tools.send(topic, 0, 'b')
      await tools.producer.send({ topic, compression, messages: [bomb] })
      const member = new Member(brokers, { group: newGroup(), topics: [topic] })
      const events: unknown[] = []
      member.batch = ({ records, nextOffset }) => events.push([records.map((r) => String(r.value)).join(), nextOffset])
      member.hole = ({ offset, nextOffset }) => events.push({ offset, nextOffset })
      await member.start()
      await until('the second hole', () => member.holes.length === 2)
      expect(events).toEqual([['a', 1], { offset: 1, nextOffset: 3 }, ['b', 4], { offset: 4, nextOffset: 5 }])
    } finally {
      decodeLimit.maxBytes = before
    }
  })

  test('a pause at a hole ends the fetch there; what stands behind it comes with the resume', async () => {
    const topic = await tools.topic(1)
    const before = decodeLimit.maxBytes
    decodeLimit.maxBytes = 1000
    try {
      const bomb = { partition: 0, value: Buffer.alloc(20_000) }
      await tools.producer.send({ topic, compression: tools.kafkajs.CompressionTypes.GZIP, messages: [bomb] })
      await tools.send(topic, 0, 'behind')
      const member = new Member(brokers, { group: newGroup(), topics: [topic] })
      member.hole = () => member.consumer.pause(member.owned)
      await member.start()
      await until('the hole', () => member.holes.length === 1)
      await sleep(250)
      expect(member.batches).toEqual([])
      member.consumer.resume(member.owned)
      await until('the record behind', () => member.values.length === 1)
      expect(member.holes).toHaveLength(1)
    } finally {
      decodeLimit.maxBytes = before
    }
  })
})

describe('large batches', () => {
  test('one above the size of a whole fetch gets through, on every partition', async () => {
    const topic = await tools.topic(3)
    for (let partition = 0; partition < 3; partition++)
      for (let i = 0; i < 3; i++) await tools.send(topic, partition, `${partition}.${i} `.padEnd(5000, 'x'))
    const small = { maxBytes: 1000, maxBytesPerPartition: 1000 }
    const member = await new Member(brokers, { group: newGroup(), topics: [topic] }, small).start()
    await until('all nine', () => member.values.length === 9)
    expect(new Set(member.values.map((v) => v.slice(0, 3))).size).toBe(9)
  })
})

describe('work outside of the handler', () => {
  const slowMs = 1000
  const gap = async (topic: string, times: number[]) => {
    // The stall must lie between two quick ones to be seen.
    await tools.send(topic, 1, 'first')
    await until('the first quick one', () => times.length === 1)
    await tools.send(topic, 0, 'slow')
    for (let i = 0; i < 12; i++) {
      await tools.send(topic, 1, `quick ${i}`)
      await sleep(slowMs / 10)
    }
    await until('all quick ones', () => times.length === 13)
    return Math.max(...times.slice(1).map((t, i) => t - (times[i] as number)))
  }

  test('a slow record does not stop the other partition', async () => {
    const topic = await tools.topic(2)
    const times: number[] = []
    const member = new Member(brokers, { group: newGroup(), topics: [topic] })
    const work: Promise<void>[] = []
    member.batch = ({ partition, records }) => {
      for (const _ of records) if (partition === 1) times.push(performance.now())
      if (partition === 0) work.push(sleep(slowMs))
    }
    await member.start()
    expect(await gap(topic, times)).toBeLessThan(slowMs * 0.8)
    await Promise.all(work)
  })

  test('in a handler of stock kafkajs it does', async () => {
    const topic = await tools.topic(2)
    const times: number[] = []
    const consumer = tools.kafka.consumer({ groupId: newGroup(), maxWaitTimeInMs: 50 })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 2,
      eachBatch: async ({ batch }) => {
        for (const _ of batch.messages) if (batch.partition === 1) times.push(performance.now())
        if (batch.partition === 0) await sleep(slowMs)
      },
    })
    expect(await gap(topic, times)).toBeGreaterThan(slowMs * 0.8)
    await consumer.disconnect()
  })
})

describe('pause, resume, seek', () => {
  test('assigned partitions are paused until resumed, and wait for a seek', async () => {
    const topic = await tools.topic(2)
    await tools.send(topic, 0, 'a')
    await tools.send(topic, 1, 'b')
    const member = new Member(brokers, { group: newGroup(), topics: [topic] })
    member.assign = ({ gained }) => {
      for (const at of gained) member.consumer.seek(at, 0)
      member.consumer.resume([{ topic, partition: 1 }])
    }
    await member.start()
    await until('partition 1', () => member.values.length > 0)
    await sleep(250)
    expect(member.values).toEqual(['b'])
    member.consumer.resume([{ topic, partition: 0 }])
    await until('partition 0', () => member.values.length === 2)
    expect(member.values).toEqual(['b', 'a'])
  })

  test('after pause no batch arrives, and nothing that came meanwhile is lost; resume brings it within 150 ms', async () => {
    const topic = await tools.topic(1)
    const at = { topic, partition: 0 }
    const member = await new Member(brokers, { group: newGroup(), topics: [topic] }).start()
    await tools.send(topic, 0, 'a')
    await until('a', () => member.values.length === 1)
    member.consumer.pause([at])
    await tools.send(topic, 0, 'b')
    await sleep(250)
    expect(member.values).toEqual(['a'])
    const delays: number[] = []
    for (let i = 0; i < 5; i++) {
      const before = member.values.length
      const start = performance.now()
      member.consumer.resume([at])
      await until('the held record', () => member.values.length > before)
      delays.push(performance.now() - start)
      member.consumer.pause([at])
      await tools.send(topic, 0, `c${i}`)
    }
    expect(member.values).toEqual(['a', 'b', 'c0', 'c1', 'c2', 'c3'])
    expect(delays.sort((a, b) => a - b)[2]).toBeLessThan(150)
  })

  test('a pause from within a handler holds for the batches already fetched with it', async () => {
    const topic = await tools.topic(8)
    for (let partition = 0; partition < 8; partition++) await tools.send(topic, partition, `v${partition}`)
    const member = new Member(brokers, { group: newGroup(), topics: [topic] })
    member.batch = () => member.consumer.pause(member.owned)
    await member.start()
    await until('the first batch', () => member.batches.length > 0)
    await sleep(300)
    expect(member.batches).toHaveLength(1)
    member.batch = () => {}
    member.consumer.resume(member.owned)
    await until('all others', () => member.values.length === 8)
    expect(new Set(member.values).size).toBe(8)
  })

  test('after a seek the next batch begins there, whatever was being fetched', async () => {
    const topic = await tools.topic(1)
    const at = { topic, partition: 0 }
    await tools.send(topic, 0, ...Array.from({ length: 50 }, (_, i) => `v${i}`))
    const member = await new Member(brokers, { group: newGroup(), topics: [topic] }).start()
    await until('the end', () => consumed(member) === 50)
    for (const offset of [10, 49, 0, 30]) {
      const before = member.batches.length
      member.consumer.seek(at, 0)
      member.consumer.seek(at, offset)
      await until('a batch', () => member.batches.length > before)
      expect(member.batches[before]?.records[0]?.offset).toBe(offset)
      await until('the end', () => consumed(member) === 50)
    }
  })

  test('a batch that a handler seeks away from is not continued', async () => {
    const topic = await tools.topic(1)
    await tools.send(topic, 0, 'a', 'b', 'c')
    const member = new Member(brokers, { group: newGroup(), topics: [topic] })
    let once = true
    member.batch = () => {
      if (once) member.consumer.seek({ topic, partition: 0 }, 1)
      once = false
    }
    await member.start()
    await until('the second batch', () => member.batches.length === 2)
    expect(member.batches[1]?.records.map((r) => r.offset)).toEqual([1, 2])
  })

  test('a resume without a seek reads nothing and says so', async () => {
    const topic = await tools.topic(1)
    await tools.send(topic, 0, 'a')
    const member = new Member(brokers, { group: newGroup(), topics: [topic] })
    member.assign = ({ gained }) => member.consumer.resume(gained)
    await member.start()
    expect(member.observer.named('consumer.resumed_without_seek')).toHaveLength(1)
    member.consumer.seek({ topic, partition: 0 }, 0)
    await until('a', () => member.values.length === 1)
  })
})

describe('offset out of range', () => {
  const truncated = async () => {
    const topic = await tools.topic(1)
    await tools.send(topic, 0, ...Array.from({ length: 10 }, (_, i) => `v${i}`))
    await tools.admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '6' }] })
    return topic
  }

  test('is an alarm with both offsets; reading goes on at the log start and the committed offset stays', async () => {
    const topic = await truncated()
    const group = newGroup()
    const member = new Member(brokers, { group, topics: [topic] })
    member.assign = ({ gained }) => {
      for (const at of gained) member.consumer.seek(at, 2)
    }
    await member.start()
    await member.consumer.commit([{ topic, partition: 0, offset: 2, metadata: 'm' }])
    member.consumer.resume(member.owned)
    await until('the rest', () => member.values.length === 4)
    expect(member.values).toEqual(['v6', 'v7', 'v8', 'v9'])
    expect(member.batches[0]).toMatchObject({ records: [], nextOffset: 6 })
    expect(member.observer.named('consumer.offset_out_of_range').map((l) => l.fields)).toEqual([
      { group, topic, partition: 0, committed: 2, logStart: 6, logEnd: 10 },
    ])
    expect(await tools.committed(group, topic)).toEqual({ 0: '2' })
  })

  test('beyond the end (the topic was made anew) reading begins at the log start', async () => {
    const topic = await truncated()
    const member = new Member(brokers, { group: newGroup(), topics: [topic] })
    member.assign = ({ gained }) => {
      for (const at of gained) member.consumer.seek(at, 5000)
      member.consumer.resume(gained)
    }
    await member.start()
    await until('everything', () => member.values.length === 4)
    expect(member.observer.named('consumer.offset_out_of_range')).toHaveLength(1)
  })

  test('stock kafkajs overwrites the committed offset with −2', async () => {
    const topic = await truncated()
    const group = newGroup()
    const member = await new Member(brokers, { group, topics: [topic] }).start()
    await member.consumer.commit([{ topic, partition: 0, offset: 2, metadata: '' }])
    await member.consumer.stop()
    const consumer = tools.kafka.consumer({ groupId: group, maxWaitTimeInMs: 50 })
    let seen = 0
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: async () => {
        seen++
      },
    })
    await until('a batch', () => seen > 0)
    await consumer.disconnect()
    expect(await tools.committed(group, topic)).toEqual({ 0: '-2' })
  })
})

describe('commit', () => {
  test('stores offset and metadata; refuses what is not owned, and everything after stop', async () => {
    const topic = await tools.topic(1)
    const other = await tools.topic(1)
    const group = newGroup()
    const member = await new Member(brokers, { group, topics: [topic] }).start()
    await member.consumer.commit([{ topic, partition: 0, offset: 0, metadata: 'generation 1' }])
    expect(await tools.admin.fetchOffsets({ groupId: group, topics: [topic] })).toMatchObject([
      { partitions: [{ offset: '0', metadata: 'generation 1' }] },
    ])
    await expect(
      member.consumer.commit([{ topic: other, partition: 0, offset: 1, metadata: '' }]),
    ).rejects.toMatchObject({ code: 'consumer.failed' })
    await member.consumer.stop()
    await expect(member.consumer.commit([{ topic, partition: 0, offset: 1, metadata: '' }])).rejects.toMatchObject({
      code: 'usage',
    })
    expect(await tools.committed(group, topic)).toEqual({ 0: '0' })
  })

  test('stock kafkajs takes a commit after stop without a word and does nothing', async () => {
    const topic = await tools.topic(1)
    const group = newGroup()
    const consumer = tools.kafka.consumer({ groupId: group, maxWaitTimeInMs: 50 })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachBatch: async () => {} })
    const stopping = consumer.stop()
    await expect(consumer.commitOffsets([{ topic, partition: 0, offset: '1' }])).resolves.toBeUndefined()
    await stopping
    await consumer.disconnect()
    expect(await tools.committed(group, topic)).toEqual({ 0: '-1' })
  })
})

describe('life', () => {
  test('a handler that throws ends the consumer through onFatal, and the batch is not counted as read', async () => {
    const topic = await tools.topic(1)
    await tools.send(topic, 0, 'a')
    const member = new Member(brokers, { group: newGroup(), topics: [topic] })
    member.batch = () => {
      throw new TypeError('a bug of ours')
    }
    await member.start()
    await until('the end', () => member.fatal !== undefined)
    expect(member.fatal).toMatchObject({ code: 'consumer.failed', cause: expect.any(TypeError) })
    await sleep(200)
    expect(member.batches).toHaveLength(1)
  })

  test('a TypeError in a handler of stock kafkajs leaves a dead consumer and a live process', async () => {
    const topic = await tools.topic(1)
    await tools.send(topic, 0, 'a')
    const consumer = tools.kafka.consumer({ groupId: newGroup(), maxWaitTimeInMs: 50 })
    let restart: boolean | undefined
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      restart = payload.restart
    })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      eachBatch: async () => {
        throw new TypeError('a bug of ours')
      },
    })
    await until('the crash', () => restart !== undefined)
    expect(restart).toBe(false)
  })

  test('start refuses a missing topic by its name', async () => {
    const member = new Member(brokers, { group: newGroup(), topics: ['no-such-topic'] })
    await expect(member.start()).rejects.toMatchObject({
      code: 'topic.missing',
      message: expect.stringContaining('no-such-topic'),
    })
  })

  test('a group that another kind of consumer uses is refused with a remedy', async () => {
    const topic = await tools.topic(1)
    const group = newGroup()
    const consumer = tools.kafka.consumer({ groupId: group, maxWaitTimeInMs: 50 })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ eachBatch: async () => {} })
    const member = new Member(brokers, { group, topics: [topic] })
    await expect(member.start()).rejects.toMatchObject({ code: 'broker.incompatible' })
    await consumer.disconnect()
  })

  test('a drain time that does not fit into the session is refused, with the largest that does', () => {
    expect(() => new Member(brokers, { group: 'g', topics: ['t'], drainMs: 9000 }, { sessionMs: 10_000 })).toThrow(
      /drainMs .* 9000 ms, at most 8000 ms/,
    )
  })

  test('stop is prompt, idempotent, legal before start, and leaves the group empty', async () => {
    const topic = await tools.topic(12)
    const group = newGroup()
    const member = await new Member(brokers, { group, topics: [topic] }).start()
    const start = performance.now()
    await Promise.all([member.consumer.stop(), member.consumer.stop()])
    expect(performance.now() - start).toBeLessThan(500)
    const { groups } = await tools.admin.describeGroups([group])
    expect(groups[0]).toMatchObject({ state: 'Empty', members: [] })
    const never = new Member(brokers, { group, topics: [topic] })
    await never.consumer.stop()
    await expect(never.start()).rejects.toMatchObject({ code: 'usage' })
  })

  test('paused partitions cost no requests but heartbeats', async () => {
    const topics: string[] = []
    for (let i = 0; i < 6; i++) topics.push(await tools.topic(12))
    let writes = 0
    const stockFactory = tools.socketFactory()
    const member = new Member(
      brokers,
      { group: newGroup(), topics },
      { heartbeatMs: 500 },
      {
        socketFactory: (options) => {
          const socket = stockFactory(options)
          const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
          socket.write = (...args: unknown[]) => {
            writes++
            return write(...args)
          }
          return socket
        },
      },
    )
    member.assign = ({ gained }) => {
      for (const at of gained) member.consumer.seek(at, 0)
    }
    await member.start()
    writes = 0
    await sleep(1600)
    expect(member.owned).toHaveLength(72)
    expect(writes).toBeGreaterThanOrEqual(2)
    expect(writes).toBeLessThanOrEqual(4)
  })
})

describe('what stock kafkajs does where the own member drains and fences', () => {
  test('work under way at a rebalance is handed to the one who joins as well: nobody is asked to finish first (row 9)', {
    retry: 2,
  }, async () => {
    const topic = await tools.topic(2)
    const groupId = newGroup()
    const values = Array.from({ length: 40 }, (_, i) => `${i}`)
    await tools.send(topic, 0, ...values)
    await tools.send(topic, 1, ...values)
    const handed: string[] = []
    const start = async (open: Set<string>) => {
      const consumer = tools.kafka.consumer({
        groupId,
        maxWaitTimeInMs: 50,
        heartbeatInterval: 100,
        rebalanceTimeout: 5_000,
      })
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await consumer.run({
        autoCommit: false,
        eachBatch: async ({ batch }) => {
          for (const { offset } of batch.messages) {
            handed.push(`${batch.partition}/${offset}`)
            open.add(`${batch.partition}/${offset}`)
          }
        },
      })
      return consumer
    }
    const open = new Set<string>()
    const first = await start(open)
    const others: Awaited<ReturnType<typeof start>>[] = []
    try {
      await until('all is handed to the first', () => open.size === 80, 20_000)
      others.push(await start(new Set()))
      // All of it was open, nothing committed, and its partition is somebody else's now.
      await until('part of it is handed out again', () => handed.length >= 120, 20_000)
      expect(new Set(handed).size).toBe(80)
    } finally {
      // Disconnected in the middle of a request it rejects where nobody listens.
      for (const consumer of [first, ...others]) {
        await consumer.stop()
        await sleep(300)
        await consumer.disconnect()
      }
    }
  })

  test('an offset asked for without a fence is from before a transaction that then commits (row 15)', async () => {
    const topic = await tools.topic(1)
    const groupId = newGroup()
    const producer = tools.kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
    await producer.connect()
    try {
      const commit = async (offset: string, between: () => Promise<void>) => {
        const transaction = await producer.transaction()
        await transaction.send({ topic, messages: [{ value: offset }] })
        await transaction.sendOffsets({
          consumerGroupId: groupId,
          topics: [{ topic, partitions: [{ partition: 0, offset }] }],
        })
        await between()
        await transaction.commit()
      }
      await commit('5', async () => undefined)
      const committed = () => expect.poll(async () => (await tools.committed(groupId, topic))[0], { timeout: 10_000 })
      await committed().toBe('5')
      let seen = ''
      await commit('9', async () => {
        seen = (await tools.committed(groupId, topic))[0] as string
      })
      await committed().toBe('9')
      // Whoever started from it would do 5 to 8 again.
      expect(seen).toBe('5')
    } finally {
      await producer.disconnect()
    }
  })
})
