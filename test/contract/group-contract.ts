import { expect } from 'vitest'
import type { Case } from './kafka-port.ts'
import { Probe } from './probe.ts'
import { out, rejection, sleep, until, type World } from './world.ts'

const drainMs = 2_000

function options(topics: readonly string[], group: string, assign: 'lanes' | 'partitions' = 'lanes') {
  return { group, topics, assign, drainMs }
}

function all(topic: string, count: number): string[] {
  return Array.from({ length: count }, (_, p) => `${topic}/${p}`)
}

async function produced(world: World, topic: string, count: number): Promise<void> {
  const at = { topic, partition: 0 }
  const kafka = world.kafka('producer')
  await kafka.producer().send(Array.from({ length: count }, (_, i) => out(at, `${i}`)))
}

export const groupContract: readonly Case[] = [
  {
    name: 'lanes: complete, disjoint, partition p of every topic with one member; kept, gained and lost tell the change',
    async body(world) {
      const wide = await world.createTopic('wide', { partitions: 6 })
      const narrow = await world.createTopic('narrow', { partitions: 4 })
      const everything = [...all(wide, 6), ...all(narrow, 4)].sort()
      const group = world.unique('lanes')
      const a = new Probe(world.kafka('a'), options([wide, narrow], group))
      await a.start()
      expect(a.assigned).toHaveLength(1)
      expect(a.assigned[0]).toMatchObject({ gained: everything, kept: [], lost: [] })
      expect(a.revoking).toEqual([])

      const b = new Probe(world.kafka('b'), options([wide, narrow], group))
      await b.start()
      await until(world.clock, 'both have their half', () => a.owned.length + b.owned.length === everything.length)
      expect([...a.owned, ...b.owned].sort()).toEqual(everything)
      for (const owned of [a.owned, b.owned]) {
        const lanes = new Set(owned.filter((n) => n.startsWith(wide)).map((n) => n.split('/')[1]))
        expect(lanes.size).toBe(3)
        for (const name of owned) expect(lanes).toContain(name.split('/')[1])
      }
      const change = a.assigned.at(-1)
      expect(change?.gained).toEqual([])
      expect(change?.lost).toEqual(b.owned)
      expect(change?.generation).toBeGreaterThan(a.assigned[0]?.generation ?? Number.POSITIVE_INFINITY)
      expect(a.revoking.map((r) => r.lost)).toEqual([false])

      await b.consumer.stop()
      await until(world.clock, 'a has all again', () => a.owned.length === everything.length)
      expect(a.assigned.at(-1)?.gained).toEqual(b.owned)
      expect(a.assigned.at(-1)?.lost).toEqual([])
      await a.consumer.stop()
      expect([a.fatal, b.fatal]).toEqual([null, null])
    },
  },
  {
    name: 'partitions: shared out singly, complete and disjoint',
    async body(world) {
      const topic = await world.createTopic('single', { partitions: 5 })
      const group = world.unique('single')
      const a = new Probe(world.kafka('a'), options([topic], group, 'partitions'))
      const b = new Probe(world.kafka('b'), options([topic], group, 'partitions'))
      await Promise.all([a.start(), b.start()])
      await until(world.clock, 'both have a share', () => Math.min(a.owned.length, b.owned.length) === 2)
      await until(world.clock, 'all is shared out', () => a.owned.length + b.owned.length === 5)
      expect([...a.owned, ...b.owned].sort()).toEqual(all(topic, 5))
      await Promise.all([a.consumer.stop(), b.consumer.stop()])
    },
  },
  {
    name: 'everything is paused after an assignment, also what was kept; seek says where it starts',
    async body(world) {
      const topic = await world.createTopic('paused', { partitions: 2 })
      await produced(world, topic, 10)
      const group = world.unique('paused')
      const at = { topic, partition: 0 }
      const a = new Probe(world.kafka('a'), options([topic], group))
      await a.start()
      a.consumer.seek(at, 4)
      await sleep(world.clock, 300)
      expect(a.batches).toEqual([])
      a.consumer.resume([at])
      await until(world.clock, 'the rest arrived', () => a.offsets.at(-1) === 9)
      expect(a.offsets).toEqual([4, 5, 6, 7, 8, 9])

      const b = new Probe(world.kafka('b'), options([topic], group))
      await b.start()
      await until(world.clock, 'shared', () => a.owned.length === 1 && b.owned.length === 1)
      const owner = a.owned.includes(`${topic}/0`) ? a : b
      const before = owner.batches.length
      await produced(world, topic, 1)
      await sleep(world.clock, 300)
      expect(owner.batches).toHaveLength(before)
      owner.consumer.seek(at, 10)
      owner.consumer.resume([at])
      await until(world.clock, 'it goes on', () => owner.offsets.at(-1) === 10)
      await Promise.all([a.consumer.stop(), b.consumer.stop()])
    },
  },
  {
    name: 'pause works at once: no batch after it, and resume goes on exactly behind the last one',
    async body(world) {
      const topic = await world.createTopic('pause', { partitions: 1 })
      const at = { topic, partition: 0 }
      const a = new Probe(world.kafka('a'), options([topic], world.unique('pause')))
      a.startAt = () => 0
      a.onBatch = () => {
        a.consumer.pause([at])
        a.consumer.pause([at])
      }
      await a.start()
      const producer = world.kafka('p').producer()
      for (let i = 0; i < 4; i++) await producer.send([out(at, `${i}`)])
      for (let seen = 0; seen < 4; ) {
        await until(world.clock, 'a batch', () => a.offsets.length > seen)
        const { length } = a.batches
        await sleep(world.clock, 150)
        expect(a.batches).toHaveLength(length)
        seen = a.offsets.length
        a.consumer.resume([at])
      }
      expect(a.values).toEqual(['0', '1', '2', '3'])
      await a.consumer.stop()
    },
  },
  {
    name: 'a handler that pauses or seeks another partition stops what was fetched of it together with its own batch',
    async body(world) {
      const topic = await world.createTopic('together', { partitions: 2 })
      const ats = [
        { topic, partition: 0 },
        { topic, partition: 1 },
      ]
      const producer = world.kafka('p').producer()
      await producer.send(ats.flatMap((at) => Array.from({ length: 6 }, (_, i) => out(at, `${i}`))))
      const a = new Probe(world.kafka('a'), options([topic], world.unique('together')))
      a.onBatch = () => {
        a.onBatch = () => {}
        a.consumer.pause(ats)
      }
      await a.start()
      for (const at of ats) a.consumer.seek(at, 0)
      a.consumer.resume(ats)
      await until(world.clock, 'a batch', () => a.batches.length > 0)
      await sleep(world.clock, 200)
      expect(a.batches).toHaveLength(1)

      // The same with a seek: of the other partition nothing may come but from there.
      const sought: number[] = []
      let turned = false
      a.onBatch = ({ partition, records }) => {
        if (!turned) {
          turned = true
          for (const at of ats) if (at.partition !== partition) a.consumer.seek(at, 5)
          return
        }
        if (partition === (a.batches[1]?.partition === 0 ? 1 : 0)) sought.push(...records.map((r) => r.offset))
      }
      for (const at of ats) a.consumer.seek(at, 0)
      a.consumer.resume(ats)
      await until(world.clock, 'the other partition is at its end', () => sought.includes(5))
      expect(sought).toEqual([5])
      await a.consumer.stop()
    },
  },
  {
    name: 'a seek from inside a handler throws away what was fetched: the next batch starts there',
    async body(world) {
      const topic = await world.createTopic('seek', { partitions: 1 })
      const at = { topic, partition: 0 }
      await produced(world, topic, 20)
      const a = new Probe(world.kafka('a'), options([topic], world.unique('seek')))
      a.startAt = () => 15
      let turned = false
      a.onBatch = () => {
        if (turned) return
        turned = true
        a.consumer.seek(at, 3)
      }
      await a.start()
      await until(world.clock, 'read to the end', () => a.batches.length > 1 && a.offsets.at(-1) === 19)
      expect(a.batches[0]?.records[0]?.offset).toBe(15)
      const second = a.batches.slice(1).flatMap((batch) => batch.records.map((r) => r.offset))
      expect(second).toEqual(Array.from({ length: 17 }, (_, i) => i + 3))
      await a.consumer.stop()
    },
  },
  {
    name: 'batches tell of markers and aborted records through nextOffset, and leave none of them visible',
    async body(world) {
      const topic = await world.createTopic('markers', { partitions: 1 })
      const at = { topic, partition: 0 }
      const producer = world.kafka('p').producer()
      await producer.send([out(at, 'one')])
      await (await world.foreignTransaction(at, ['no'])).abort()
      await (await world.foreignTransaction(at, ['two'])).commit()
      const a = new Probe(world.kafka('a'), options([topic], world.unique('markers')))
      a.startAt = () => 0
      await a.start()
      await until(world.clock, 'all is covered', () => a.batches.at(-1)?.nextOffset === 5)
      expect(a.values).toEqual(['one', 'two'])
      let next = 0
      for (const batch of a.batches) {
        expect(batch.nextOffset).toBeGreaterThan(next)
        next = batch.nextOffset
      }
      await a.consumer.stop()
    },
  },
  {
    name: 'onRevoking is awaited before the rejoin, and what is committed in it stands when the next owner is told',
    async body(world) {
      const topic = await world.createTopic('revoke', { partitions: 2 })
      const group = world.unique('revoke')
      const kafka = world.kafka('a')
      const lane = kafka.transactional(world.unique('revoke'))
      await lane.fence()
      const a = new Probe(kafka, options([topic], group))
      a.onRevoking = async () => {
        await sleep(world.clock, 300)
        await a.consumer.commit([{ topic, partition: 0, offset: 11, metadata: 'plain' }])
        await lane.transact({ records: [], group, offsets: [{ topic, partition: 1, offset: 22, metadata: 'txn' }] })
        a.onRevoking = async () => {}
      }
      await a.start()
      const b = new Probe(world.kafka('b'), options([topic], group))
      const joining = b.start()
      let committedFirst = false
      void joining.then(() => {
        committedFirst = a.revoking.length === 1 && a.assigned.length >= 1
      })
      await joining
      expect(committedFirst).toBe(true)
      const next = world.kafka('b')
      const partitions = [
        { topic, partition: 0 },
        { topic, partition: 1 },
      ]
      await until(world.clock, 'the transaction is seen', async () => {
        return (await next.offsets.committed(group, partitions))[1]?.offset === 22
      })
      expect(await next.offsets.committed(group, partitions)).toEqual([
        { topic, partition: 0, offset: 11, metadata: 'plain' },
        { topic, partition: 1, offset: 22, metadata: 'txn' },
      ])
      await Promise.all([a.consumer.stop(), b.consumer.stop()])
    },
  },
  {
    name: 'a drain that never ends holds the group up to its deadline, not longer; no batch comes meanwhile',
    async body(world) {
      const topic = await world.createTopic('stuck', { partitions: 2 })
      const group = world.unique('stuck')
      const a = new Probe(world.kafka('a'), options([topic], group))
      a.startAt = () => 0
      let deadlineMs = 0
      let revokedMs = 0
      let during = 0
      a.onRevoking = (info) => {
        deadlineMs = info.deadlineMs
        revokedMs = world.clock.mono()
        a.onBatch = () => {
          if (a.assigned.length === 1) during++
        }
        return new Promise(() => {})
      }
      await a.start()
      const b = new Probe(world.kafka('b'), options([topic], group))
      const joining = b.start()
      await until(world.clock, 'a is asked', () => a.revoking.length === 1)
      await produced(world, topic, 5)
      await joining
      expect(deadlineMs - revokedMs).toBeLessThanOrEqual(drainMs + 1)
      expect(deadlineMs - revokedMs).toBeGreaterThan(drainMs - 500)
      const tookMs = world.clock.mono() - revokedMs
      expect(tookMs).toBeGreaterThan(drainMs - 500)
      expect(tookMs).toBeLessThan(world.sessionTimeoutMs)
      expect(during).toBe(0)
      await until(world.clock, 'a goes on', () => a.assigned.length === 2)
      expect(a.assigned[1]?.kept).toHaveLength(1)
      await Promise.all([a.consumer.stop(), b.consumer.stop()])
    },
  },
  {
    name: 'commit stores offset and metadata; what is not owned, or comes after stop, is refused',
    async body(world) {
      const topic = await world.createTopic('commit', { partitions: 1 })
      const at = { topic, partition: 0 }
      const kafka = world.kafka('a')
      const group = world.unique('commit')
      const a = new Probe(kafka, options([topic], group, 'partitions'))
      await a.start()
      await a.consumer.commit([{ ...at, offset: 3, metadata: 'g:1' }])
      expect(await kafka.offsets.committed(group, [at])).toEqual([{ ...at, offset: 3, metadata: 'g:1' }])
      expect(await rejection(a.consumer.commit([{ topic: 'other', partition: 0, offset: 1, metadata: '' }]))).toBe(
        'consumer.failed',
      )
      await a.consumer.stop()
      expect(await rejection(a.consumer.commit([{ ...at, offset: 9, metadata: '' }]))).toBe('usage')
      expect((await kafka.offsets.committed(group, [at]))[0]?.offset).toBe(3)
    },
  },
  {
    name: 'a lease is young while the group answers, and there is none without membership',
    async body(world) {
      const topic = await world.createTopic('lease', { partitions: 1 })
      const a = new Probe(world.kafka('a'), options([topic], world.unique('lease')))
      expect(a.consumer.leaseAgeMs()).toBe(Number.POSITIVE_INFINITY)
      await a.start()
      for (let i = 0; i < 5; i++) {
        await sleep(world.clock, world.sessionTimeoutMs / 10)
        expect(a.consumer.leaseAgeMs()).toBeLessThan(world.sessionTimeoutMs / 2)
      }
      await a.consumer.stop()
      expect(a.consumer.leaseAgeMs()).toBe(Number.POSITIVE_INFINITY)
    },
  },
  {
    name: 'stop is idempotent, nothing is told after it, and the others need not wait for a session to end',
    async body(world) {
      const topic = await world.createTopic('stop', { partitions: 2 })
      const group = world.unique('stop')
      const a = new Probe(world.kafka('a'), options([topic], group))
      const b = new Probe(world.kafka('b'), options([topic], group))
      a.startAt = () => 0
      await Promise.all([a.start(), b.start()])
      await until(world.clock, 'shared', () => a.owned.length === 1 && b.owned.length === 1)
      const beganMs = world.clock.mono()
      await Promise.all([a.consumer.stop(), a.consumer.stop()])
      const told = [a.assigned.length, a.revoking.length, a.batches.length]
      await until(world.clock, 'b has both', () => b.owned.length === 2)
      expect(world.clock.mono() - beganMs).toBeLessThan(world.sessionTimeoutMs - 1_000)
      await produced(world, topic, 3)
      await sleep(world.clock, 200)
      expect([a.assigned.length, a.revoking.length, a.batches.length]).toEqual(told)
      await b.consumer.stop()
    },
  },
  {
    name: 'a missing topic, a drain that does not fit into the session, and a second start are refused',
    async body(world) {
      const topic = await world.createTopic('refused', { partitions: 1 })
      const kafka = world.kafka('a')
      const missing = new Probe(kafka, options([world.unique('absent')], world.unique('refused')))
      expect(await rejection(missing.start())).toBe('topic.missing')
      const tooLong = { ...options([topic], world.unique('refused')), drainMs: world.sessionTimeoutMs }
      expect(await rejection((async () => kafka.consumer(tooLong))())).toBe('config.invalid')
      const twice = new Probe(world.kafka('b'), options([topic], world.unique('refused')))
      await twice.start()
      expect(await rejection(twice.start())).toBe('usage')
      await twice.consumer.stop()
    },
  },
]
