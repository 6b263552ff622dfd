import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { type RecordBatch, visible } from '../../src/kafka/record-set.ts'
import { KafkaTransactionalProducer } from '../../src/kafka/transactional-producer.ts'
import { addresses, record, testClient, testKafka, testTopic, valuesOf } from '../support/kafka.ts'
import { stockKafkajs } from '../support/stock-kafkajs.ts'

interface Step {
  readonly producer: number
  readonly act: 'write' | 'abort' | 'commit'
}

/** A partition's log from interleaved transactions, what the broker would list as aborted, and what may be seen. */
function log(steps: readonly Step[], order: (n: number) => number) {
  const batches: RecordBatch[] = []
  const open = new Map<number, { first: number; offsets: number[] }>()
  const aborted: { producerId: string; firstOffset: string; end: number }[] = []
  const hidden = new Set<number>()
  const all: number[] = []
  let offset = 0
  const push = (producer: number, control: 'abort' | 'commit' | null) => {
    const records = [
      {
        offset,
        timestampMs: 0,
        key: control === null ? null : Buffer.from([0, 0, 0, control === 'abort' ? 0 : 1]),
        value: null,
        headers: {},
      },
    ]
    batches.push({
      baseOffset: offset,
      nextOffset: offset + 1,
      producerId: producer,
      transactional: true,
      control,
      records,
      undecodable: [],
    })
    offset++
  }
  for (const { producer, act } of steps) {
    const txn = open.get(producer)
    if (act === 'write') {
      if (txn === undefined) open.set(producer, { first: offset, offsets: [offset] })
      else txn.offsets.push(offset)
      all.push(offset)
      push(producer, null)
    } else if (txn !== undefined) {
      open.delete(producer)
      if (act === 'abort') {
        aborted.push({ producerId: String(producer), firstOffset: String(txn.first), end: offset })
        for (const o of txn.offsets) hidden.add(o)
      }
      push(producer, act)
    }
  }
  // Only what is decided is fetched; the open tail lies above the stable offset.
  const stable = Math.min(offset, ...[...open.values()].map(({ first }) => first))
  const shown = batches.filter((b) => b.nextOffset <= stable)
  const listed = aborted
    .map((t, i) => ({ t, rank: order(i) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ t }) => t)
  return { batches: shown, aborted: listed, expected: all.filter((o) => o < stable && !hidden.has(o)), stable }
}

const steps = fc.array(
  fc.record({
    producer: fc.nat(3),
    act: fc.constantFrom('write', 'write', 'abort', 'commit') as fc.Arbitrary<Step['act']>,
  }),
  { maxLength: 60 },
)

// The first test must not pay for the broker's start.
beforeAll(async () => {
  await addresses()
})

describe('what a read-committed reader sees (row 1)', () => {
  it('is exactly what was committed, however transactions interleave and the broker lists them (property)', () => {
    fc.assert(
      fc.property(steps, fc.integer(), fc.nat(60), (list, salt, from) => {
        const { batches, aborted, expected, stable } = log(list, (i) => (i * 7919 + salt) % 13)
        const start = Math.min(from, stable)
        // The broker lists those transactions that reach into what was fetched.
        const listed = aborted.filter(({ end }) => end >= start)
        const seen = visible({ batches: batches.filter((b) => b.nextOffset > start), bytes: 1 }, listed, start)
        expect(seen.records.map(({ offset }) => offset)).toEqual(expected.filter((o) => o >= start))
        expect(seen.nextOffset).toBe(Math.max(start, batches.at(-1)?.nextOffset ?? 0))
      }),
      { numRuns: 1000 },
    )
  })

  it('takes a record whose key looks like an abort marker for a record; the stock library lets the rest through', () => {
    const looksLike = { offset: 0, timestampMs: 0, key: Buffer.alloc(4), value: null, headers: {} }
    const data = (offset: number, records = [{ ...looksLike, offset }]): RecordBatch => ({
      baseOffset: offset,
      nextOffset: offset + 1,
      producerId: 1,
      transactional: true,
      control: null,
      records,
      undecodable: [],
    })
    const aborted = [{ producerId: '1', firstOffset: '0' }]
    expect(visible({ batches: [data(0), data(1)], bytes: 1 }, aborted, 0).records).toEqual([])

    const stock = stockKafkajs()<(args: object) => unknown[]>('consumer/filterAbortedMessages')
    const context = { producerId: '1', inTransaction: true }
    const messages = [0, 1].map((o) => ({ offset: String(o), key: Buffer.alloc(4), batchContext: context }))
    expect(stock({ messages, abortedTransactions: aborted }).length).toBeGreaterThan(0)
  })

  it('holds on a real broker with three producers aborting in turn, where the stock consumer leaks', async () => {
    const topic = await testTopic()
    const kafka = await testKafka()
    const client = await testClient()
    // Transactions left open side by side: written, then ended in reverse order by fencing.
    const { kafkajs } = (await import('../../src/kafka/load.ts')).library
    const raw = new kafkajs.Kafka({ brokers: await addresses(), logLevel: 0, retry: { initialRetryTime: 5 } })
    const producers = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => {
        const producer = raw.producer({
          transactionalId: `${topic}-${name}`,
          idempotent: true,
          maxInFlightRequests: 1,
          createPartitioner: () => () => 0,
        })
        await producer.connect()
        return producer
      }),
    )
    for (let round = 0; round < 3; round++) {
      const open = []
      for (const producer of producers) open.push(await producer.transaction())
      for (let i = 0; i < 2; i++)
        for (const txn of open) await txn.send({ topic, messages: [{ value: `abort-${round}` }] })
      for (const txn of open.reverse()) await txn.abort()
      const writer = new KafkaTransactionalProducer(client, `${topic}-w`)
      await writer.transact({ records: [record(topic, `commit-${round}`)], group: topic, offsets: [] })
      await writer.close()
    }
    await Promise.all(producers.map((producer) => producer.disconnect()))
    expect(await valuesOf(kafka, topic)).toEqual(['commit-0', 'commit-1', 'commit-2'])

    const consume = async (library: typeof import('kafkajs'), groupId: string) => {
      const consumer = new library.Kafka({ brokers: await addresses(), logLevel: 0 }).consumer({
        groupId,
        maxWaitTimeInMs: 50,
      })
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      const got: string[] = []
      const done = Promise.withResolvers<void>()
      await consumer.run({
        eachBatch: async ({ batch }) => {
          got.push(...batch.messages.map(({ value }) => String(value)))
          if (got.includes('commit-2')) done.resolve()
        },
      })
      await done.promise
      await consumer.disconnect()
      return got
    }
    // kafkajs's own consumer with our batches in it (its admin client uses one), then as published.
    expect(await consume(kafkajs, `${topic}-patched`)).toEqual(['commit-0', 'commit-1', 'commit-2'])
    const got = await consume(stockKafkajs()<typeof import('kafkajs')>(''), topic)
    expect(got.filter((value) => value.startsWith('abort')).length).toBeGreaterThan(0)
  })
})
