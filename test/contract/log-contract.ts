import { expect } from 'vitest'
import { headerMap } from '../../src/core/record.ts'
import type { Case } from './kafka-port.ts'
import { out, readAll, rejection, sleep, values } from './world.ts'

/** Appending and reading without groups. */
export const logContract: readonly Case[] = [
  {
    name: 'send resolves with first offset and count per partition, and order is the order of calls',
    async body(world) {
      const topic = await world.createTopic('send', { partitions: 2 })
      const kafka = world.kafka()
      const producer = kafka.producer()
      const p0 = { topic, partition: 0 }
      const p1 = { topic, partition: 1 }
      const first = producer.send([out(p0, 'a'), out(p1, 'x'), out(p0, 'b')])
      const second = producer.send([out(p0, 'c')])
      const byPartition = [...(await first)].sort((a, b) => a.partition - b.partition)
      expect(byPartition).toEqual([
        { ...p0, firstOffset: 0, count: 2, appendTimeMs: null },
        { ...p1, firstOffset: 0, count: 1, appendTimeMs: null },
      ])
      expect(await second).toEqual([{ ...p0, firstOffset: 2, count: 1, appendTimeMs: null }])
      const reader = kafka.reader()
      expect(values((await readAll(reader, p0)).records)).toEqual(['a', 'b', 'c'])
      expect(await reader.ends(topic)).toEqual(
        new Map([
          [0, 3],
          [1, 1],
        ]),
      )
      expect(await reader.starts(topic, [1])).toEqual(new Map([[1, 0]]))
    },
  },
  {
    name: 'keys, null values, raw bytes and odd header names come back as they were sent',
    async body(world) {
      const topic = await world.createTopic('bytes', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const bytes = Buffer.from([0, 255, 128, 10])
      await kafka.producer().send([
        { ...at, key: Buffer.from([1, 2]), value: bytes, headers: headerMap([['constructor', bytes]]) },
        { ...at, key: 'ключ', value: null, headers: headerMap([['empty', '']]) },
        { ...at, key: null, value: Buffer.alloc(0), headers: headerMap() },
      ])
      const { records } = await readAll(kafka.reader(), at)
      expect(records.map((r) => [r.offset, r.key, r.value])).toEqual([
        [0, Buffer.from([1, 2]), bytes],
        [1, Buffer.from('ключ'), null],
        [2, null, Buffer.alloc(0)],
      ])
      expect(records.map((r) => Object.entries(r.headers))).toEqual([
        [['constructor', bytes]],
        [['empty', Buffer.alloc(0)]],
        [],
      ])
      expect(records.map((r) => Object.getPrototypeOf(r.headers))).toEqual([null, null, null])
    },
  },
  {
    name: 'a LogAppendTime topic stamps records with the time it answers, and time does not go back',
    async body(world) {
      const topic = await world.createTopic('append-time', { partitions: 1, appendTime: true })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const producer = kafka.producer()
      const times: (number | null)[] = []
      for (let i = 0; i < 5; i++) {
        times.push((await producer.send([out(at, `${i}`)]))[0]?.appendTimeMs ?? null)
        await sleep(world.clock, 3)
      }
      const lane = kafka.transactional(world.unique('append-time'))
      const moved = await lane.transact({ records: [out(at, '5')], group: world.unique('g'), offsets: [] })
      times.push(moved[0]?.appendTimeMs ?? null)
      const { records } = await readAll(kafka.reader(), at)
      expect(records.map((r) => r.timestampMs)).toEqual(times)
      expect(times).toEqual([...times].sort((a, b) => Number(a) - Number(b)))
      expect(Number(times[5])).toBeGreaterThan(Number(times[0]))
      expect(Math.abs(Number(times[0]) - world.clock.now())).toBeLessThan(60_000)
    },
  },
  {
    name: 'a plain topic stamps records with the producer’s time',
    async body(world) {
      const topic = await world.createTopic('create-time', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const beforeMs = world.clock.now()
      await kafka.producer().send([out(at, 'x')])
      const [record] = (await readAll(kafka.reader(), at)).records
      expect(record?.timestampMs).toBeGreaterThanOrEqual(beforeMs)
      expect(record?.timestampMs).toBeLessThanOrEqual(world.clock.now())
    },
  },
  {
    name: 'a too large record is refused with nothing written, and the producer goes on',
    async body(world) {
      const topic = await world.createTopic('large', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const producer = kafka.producer()
      const large = { ...out(at, ''), value: Buffer.alloc(world.maxMessageBytes + 1) }
      expect(await rejection(producer.send([large]))).toBe('record.too-large')
      expect(await kafka.reader().ends(topic)).toEqual(new Map([[0, 0]]))
      await producer.send([out(at, 'small')])
      expect(values((await readAll(kafka.reader(), at)).records)).toEqual(['small'])
    },
  },
  {
    name: 'more than one request can carry is split, and all of it arrives in order',
    async body(world) {
      const topic = await world.createTopic('chunks', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const body = Buffer.alloc(Math.floor(world.maxMessageBytes / 3))
      const sent = Array.from({ length: 8 }, (_, i) => ({ ...out(at, '', `${i}`), value: body }))
      const appended = await kafka.producer().send(sent)
      expect(appended.reduce((sum, a) => sum + a.count, 0)).toBe(8)
      const { records } = await readAll(kafka.reader(), at)
      expect(records.map((r) => r.key?.toString())).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
    },
  },
  {
    name: 'a closed producer says so',
    async body(world) {
      const topic = await world.createTopic('closed', { partitions: 1 })
      const producer = world.kafka().producer()
      await producer.close()
      expect(await rejection(producer.send([out({ topic, partition: 0 }, 'x')]))).toBe('producer.closed')
    },
  },
  {
    name: 'what lies behind an open transaction is not visible; after its end the aborted part never is',
    async body(world) {
      const topic = await world.createTopic('isolation', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const producer = kafka.producer()
      const reader = kafka.reader()
      await producer.send([out(at, 'before')])
      const aborted = await world.foreignTransaction(at, ['no', 'never'])
      const committed = await world.foreignTransaction(at, ['yes'])
      await producer.send([out(at, 'behind')])
      await committed.commit()
      expect(values((await readAll(reader, at)).records)).toEqual(['before'])
      expect((await reader.ends(topic)).get(0)).toBe(1)
      expect((await reader.fetch({ ...at, from: 1, maxWaitMs: 50 })).records).toEqual([])
      await aborted.abort()
      let seen: (string | null)[] = []
      for (let i = 0; i < 500 && seen.length < 3; i++) seen = values((await readAll(reader, at)).records)
      expect(seen).toEqual(['before', 'yes', 'behind'])
    },
  },
  {
    name: 'nextOffset goes over markers and aborted records up to the end, and never back',
    async body(world) {
      const topic = await world.createTopic('gaps', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const reader = kafka.reader()
      const producer = kafka.producer()
      await (await world.foreignTransaction(at, ['a1', 'a2'])).abort()
      await producer.send([out(at, 'one')])
      await (await world.foreignTransaction(at, ['two'])).commit()
      await (await world.foreignTransaction(at, ['a3'])).abort()
      // 2 aborted, marker, one, two, marker, aborted, marker.
      for (let i = 0; i < 500 && (await reader.ends(topic)).get(0) !== 8; i++) await sleep(world.clock, 10)
      const { records, nextOffset } = await readAll(reader, at)
      expect(records.map((r) => [r.offset, r.value?.toString()])).toEqual([
        [3, 'one'],
        [4, 'two'],
      ])
      expect(nextOffset).toBe(8)
    },
  },
  {
    name: 'a fetch at the end waits for what comes, at most maxWaitMs; beyond the end it is refused',
    async body(world) {
      const topic = await world.createTopic('wait', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const reader = kafka.reader()
      const beganMs = world.clock.mono()
      const empty = await reader.fetch({ ...at, from: 0, maxWaitMs: 200 })
      expect(empty.records).toEqual([])
      expect(empty.nextOffset).toBe(0)
      expect(world.clock.mono() - beganMs).toBeGreaterThan(150)
      const waiting = reader.fetch({ ...at, from: 0, maxWaitMs: 15_000 })
      await sleep(world.clock, 50)
      await kafka.producer().send([out(at, 'came')])
      const sentMs = world.clock.mono()
      const came = await waiting
      expect(values(came.records)).toEqual(['came'])
      expect(came.highWatermark).toBe(1)
      expect(world.clock.mono() - sentMs).toBeLessThan(5_000)
      expect(await rejection(reader.fetch({ ...at, from: 50, maxWaitMs: 50 }))).toBe('internal')
    },
  },
  {
    name: 'a fetch brings at least one record however small maxBytes, and reading on gives each exactly once',
    async body(world) {
      const topic = await world.createTopic('small-fetch', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const producer = kafka.producer()
      for (let i = 0; i < 4; i++) await producer.send([out(at, `${i}`.repeat(2_000))])
      const reader = kafka.reader()
      const seen: number[] = []
      for (let from = 0; from < 4; ) {
        const batch = await reader.fetch({ ...at, from, maxBytes: 100 })
        expect(batch.records.length).toBeGreaterThan(0)
        seen.push(...batch.records.map((r) => r.offset))
        from = batch.nextOffset
      }
      expect(seen).toEqual([0, 1, 2, 3])
      const middle = await reader.fetch({ ...at, from: 2 })
      expect(middle.records[0]?.offset).toBe(2)
    },
  },
  {
    name: 'compaction keeps the last record of each key and leaves holes that nextOffset goes over',
    async body(world) {
      const topic = await world.createTopic('compacted', { partitions: 1, compacted: true })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const producer = kafka.producer()
      for (let i = 0; i < 6; i++) await producer.send([out(at, `v${i}`, i % 2 === 0 ? 'even' : 'odd')])
      await world.compact(at)
      const { records } = await readAll(kafka.reader(), at)
      const ours = records.filter((r) => r.value?.toString().startsWith('v'))
      expect(ours.map((r) => [r.offset, r.key?.toString(), r.value?.toString()])).toEqual([
        [4, 'even', 'v4'],
        [5, 'odd', 'v5'],
      ])
    },
  },
  {
    name: 'partitions counts what exists and leaves out what does not',
    async body(world) {
      const topic = await world.createTopic('count', { partitions: 3 })
      expect(await world.kafka().partitions([topic, world.unique('absent')])).toEqual(new Map([[topic, 3]]))
    },
  },
  {
    name: 'the first calls of fresh clients may come all at once',
    async body(world) {
      const topic = await world.createTopic('at-once', { partitions: 4 })
      const kafka = world.kafka()
      const reader = kafka.reader()
      const group = world.unique('at-once')
      const producer = kafka.producer()
      const calls = [0, 1, 2, 3].flatMap((partition) => [
        kafka.offsets.committed(group, [{ topic, partition }]),
        reader.ends(topic, [partition]),
        reader.fetch({ topic, partition, from: 0, maxWaitMs: 10 }),
        kafka.partitions([topic]),
        kafka.transactional(`${group}-${partition}`).fence(),
        producer.send([out({ topic, partition }, 'x')]),
      ])
      expect(await Promise.all(calls.map(rejection))).toEqual(calls.map(() => 'resolved'))
    },
  },
]
