import { expect } from 'vitest'
import type { Case } from './kafka-port.ts'
import { out, readAll, rejection, sleep, values } from './world.ts'

export const transactionContract: readonly Case[] = [
  {
    name: 'a group without commits has no offset and no metadata',
    async body(world) {
      const topic = await world.createTopic('none', { partitions: 1 })
      const at = { topic, partition: 0 }
      const committed = await world.kafka().offsets.committed(world.unique('nobody'), [at])
      expect(committed).toEqual([{ ...at, offset: null, metadata: '' }])
    },
  },
  {
    name: 'records, offsets and 4096 characters of metadata go in together',
    async body(world) {
      const source = await world.createTopic('source', { partitions: 2 })
      const target = await world.createTopic('target', { partitions: 2 })
      const kafka = world.kafka()
      const group = world.unique('lanes')
      const id = world.unique('lane')
      const lane = kafka.transactional(id)
      await lane.fence()
      const metadata = 'm'.repeat(4096)
      const appended = await lane.transact({
        records: [out({ topic: target, partition: 0 }, 'a'), out({ topic: target, partition: 1 }, 'b')],
        group,
        offsets: [
          { topic: source, partition: 0, offset: 7, metadata },
          { topic: source, partition: 1, offset: 9, metadata: '' },
        ],
      })
      expect([...appended].sort((a, b) => a.partition - b.partition)).toEqual([
        { topic: target, partition: 0, firstOffset: 0, count: 1, appendTimeMs: null },
        { topic: target, partition: 1, firstOffset: 0, count: 1, appendTimeMs: null },
      ])
      // Only a fence makes sure that what is decided can also be seen.
      await kafka.transactional(id).fence()
      expect(
        await kafka.offsets.committed(group, [
          { topic: source, partition: 0 },
          { topic: source, partition: 1 },
        ]),
      ).toEqual([
        { topic: source, partition: 0, offset: 7, metadata },
        { topic: source, partition: 1, offset: 9, metadata: '' },
      ])
      expect(values((await readAll(kafka.reader(), { topic: target, partition: 0 })).records)).toEqual(['a'])
      expect(values((await readAll(kafka.reader(), { topic: target, partition: 1 })).records)).toEqual(['b'])
    },
  },
  {
    name: 'transactions follow each other on one producer, with offsets only and with records only',
    async body(world) {
      const topic = await world.createTopic('row', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const group = world.unique('row')
      const id = world.unique('row')
      const lane = kafka.transactional(id)
      for (let i = 1; i <= 5; i++) {
        await lane.transact({
          records: i % 2 === 0 ? [] : [out(at, `${i}`)],
          group,
          offsets: i === 3 ? [] : [{ ...at, offset: i, metadata: `${i}` }],
        })
      }
      expect(await lane.transact({ records: [], group, offsets: [] })).toEqual([])
      await kafka.transactional(id).fence()
      expect(await kafka.offsets.committed(group, [at])).toEqual([{ ...at, offset: 5, metadata: '5' }])
      expect(values((await readAll(kafka.reader(), at)).records)).toEqual(['1', '3', '5'])
    },
  },
  {
    name: 'a too large record in a transaction: nothing is written, no offset moves, the producer is dead',
    async body(world) {
      const topic = await world.createTopic('txn-large', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const group = world.unique('txn-large')
      const id = world.unique('txn-large')
      const lane = kafka.transactional(id)
      const large = { ...out(at, ''), value: Buffer.alloc(world.maxMessageBytes + 1) }
      const offsets = [{ ...at, offset: 5, metadata: '' }]
      expect(await rejection(lane.transact({ records: [out(at, 'small'), large], group, offsets }))).toBe(
        'record.too-large',
      )
      expect(await rejection(lane.transact({ records: [out(at, 'again')], group, offsets }))).toBe('producer.closed')
      const next = kafka.transactional(id)
      await next.fence()
      expect((await readAll(kafka.reader(), at)).records).toEqual([])
      expect(await kafka.offsets.committed(group, [at])).toEqual([{ ...at, offset: null, metadata: '' }])
      await next.transact({ records: [out(at, 'next')], group, offsets })
      for (let i = 0; i < 500 && (await readAll(kafka.reader(), at)).records.length === 0; i++)
        await sleep(world.clock, 10)
      expect(values((await readAll(kafka.reader(), at)).records)).toEqual(['next'])
    },
  },
  {
    name: 'metadata above 4096 characters fails the transaction with nothing written',
    async body(world) {
      const topic = await world.createTopic('txn-meta', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka()
      const group = world.unique('txn-meta')
      const id = world.unique('txn-meta')
      const offsets = [{ ...at, offset: 5, metadata: 'm'.repeat(4097) }]
      const refused = kafka.transactional(id).transact({ records: [out(at, 'x')], group, offsets })
      expect(await rejection(refused)).toBe('producer.failed')
      await kafka.transactional(id).fence()
      expect((await readAll(kafka.reader(), at)).records).toEqual([])
      expect(await kafka.offsets.committed(group, [at])).toEqual([{ ...at, offset: null, metadata: '' }])
    },
  },
  {
    name: 'a fence cuts off whoever held the id before, for good',
    async body(world) {
      const topic = await world.createTopic('fence', { partitions: 1 })
      const at = { topic, partition: 0 }
      const group = world.unique('fence')
      const id = world.unique('fence')
      const before = world.kafka('before').transactional(id)
      await before.transact({ records: [out(at, 'mine')], group, offsets: [{ ...at, offset: 1, metadata: '' }] })
      const kafka = world.kafka('after')
      const after = kafka.transactional(id)
      await after.fence()
      const late = before.transact({ records: [out(at, 'late')], group, offsets: [{ ...at, offset: 2, metadata: '' }] })
      expect(await rejection(late)).toBe('producer.fenced')
      await after.transact({ records: [out(at, 'theirs')], group, offsets: [{ ...at, offset: 3, metadata: '' }] })
      await kafka.transactional(id).fence()
      expect(values((await readAll(kafka.reader(), at)).records)).toEqual(['mine', 'theirs'])
      expect((await kafka.offsets.committed(group, [at]))[0]?.offset).toBe(3)
    },
  },
  {
    name: 'whenever a takeover strikes, fence and committed offset tell whether the transaction happened, and its records agree',
    async body(world) {
      const topic = await world.createTopic('takeover', { partitions: 1 })
      const at = { topic, partition: 0 }
      const group = world.unique('takeover')
      const id = world.unique('takeover')
      const kafka = world.kafka()
      const expected: string[] = []
      for (let i = 1; i <= 12; i++) {
        const victim = world.kafka(`victim-${i}`).transactional(id)
        await victim.fence()
        const struck = rejection(
          victim.transact({ records: [out(at, `${i}`)], group, offsets: [{ ...at, offset: i, metadata: `${i}` }] }),
        )
        await sleep(world.clock, i - 1)
        await kafka.transactional(id).fence()
        const result = await struck
        const [committed] = await kafka.offsets.committed(group, [at])
        const happened = committed?.offset === i
        if (happened) expected.push(`${i}`)
        expect(['resolved', 'producer.fenced', 'producer.failed']).toContain(result)
        if (result === 'resolved') expect(happened).toBe(true)
        if (result === 'producer.fenced') expect(happened).toBe(false)
        expect(values((await readAll(kafka.reader(), at)).records)).toEqual(expected)
      }
    },
  },
]
