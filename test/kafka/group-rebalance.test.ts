import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TopicPartition } from '../../src/core/record.ts'
import { KafkaClient } from '../../src/kafka/client.ts'
import { testBroker } from '../support/broker.ts'
import { realClock } from '../support/clock.ts'
import { key, Member, newGroup, sleep, stock, until } from './group-support.ts'

let brokers: string
let tools: Awaited<ReturnType<typeof stock>>
beforeAll(async () => {
  ;({ brokers } = await testBroker())
  tools = await stock(brokers)
})
afterAll(() => tools.close())

const quick = { heartbeatMs: 200, sessionMs: 6000 }
const stable = (members: readonly Member[], partitions: number) => () =>
  members.reduce((n, m) => n + m.owned.length, 0) === partitions &&
  new Set(members.map((m) => m.assigned.at(-1)?.generation)).size === 1
const lanesOf = (m: Member) => new Set(m.owned.map((tp) => tp.partition))

describe('assignment', () => {
  test('a second member takes half of the lanes, whole; the first keeps the rest, position and all, paused', async () => {
    const topics = [await tools.topic(4), await tools.topic(4)]
    const group = newGroup()
    const a = await new Member(brokers, { group, topics, drainMs: 2000 }, quick).start()
    await tools.send(topics[0] as string, 0, 'x')
    await until('x', () => a.values.length === 1)
    a.assign = () => {}
    const b = await new Member(brokers, { group, topics, drainMs: 2000 }, quick).start()
    await until('both', stable([a, b], 8))
    const last = a.assigned.at(-1)
    expect(a.revoked).toMatchObject([{ lost: false }])
    expect(last?.kept).toHaveLength(4)
    expect(last?.gained).toEqual([])
    expect(last?.lost.map(key).sort()).toEqual(b.owned.map(key).sort())
    for (const m of [a, b])
      for (const lane of lanesOf(m)) expect(m.owned.filter((tp) => tp.partition === lane)).toHaveLength(2)
    // Kept and paused: nothing arrives until resumed, then it goes on behind what was handed over.
    const kept = last?.kept[0] as TopicPartition
    await tools.send(kept.topic, kept.partition, 'y')
    await sleep(250)
    expect(a.values).toEqual(['x'])
    a.consumer.resume(a.owned)
    await until('y', () => a.values.length === 2)
    expect(a.values).toEqual(['x', 'y'])
  })

  test('partitions mode spreads single partitions of all topics', async () => {
    const topics = [await tools.topic(3), await tools.topic(1)]
    const group = newGroup()
    const options = { group, topics, assign: 'partitions' as const, drainMs: 2000 }
    const a = await new Member(brokers, options, quick).start()
    const b = await new Member(brokers, options, quick).start()
    await until('both', stable([a, b], 4))
    expect([a.owned.length, b.owned.length]).toEqual([2, 2])
  })
})

describe('added partitions', () => {
  test('are found with the next metadata and get an owner by a rebalance', async () => {
    const topic = await tools.topic(2)
    const group = newGroup()
    const settings = { ...quick, metadataMaxAgeMs: 300 }
    const options = { group, topics: [topic], assign: 'partitions' as const, drainMs: 1000 }
    const a = await new Member(brokers, options, settings).start()
    await tools.admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
    await until('three', () => a.owned.length === 3)
    expect(a.assigned.at(-1)).toMatchObject({ kept: [{ partition: 0 }, { partition: 1 }], gained: [{ partition: 2 }] })
    await tools.admin.fetchTopicOffsets(topic)
    await tools.send(topic, 2, 'x')
    await until('x', () => a.values.length === 1)
  })
})

describe('drain', () => {
  test('is awaited before the join, and commits are accepted meanwhile', async () => {
    const topic = await tools.topic(2)
    const group = newGroup()
    const a = await new Member(
      brokers,
      { group, topics: [topic], drainMs: 4000 },
      { sessionMs: 6000, heartbeatMs: 300 },
    ).start()
    const events: string[] = []
    a.revoke = async ({ deadlineMs }) => {
      await sleep(1500)
      await a.consumer.commit([{ topic, partition: 0, offset: 1, metadata: 'drained' }])
      events.push('drained')
      expect(deadlineMs).toBeGreaterThan(performance.now())
    }
    const assign = a.assign
    a.assign = (info) => {
      events.push('joined')
      assign(info)
    }
    const b = await new Member(brokers, { group, topics: [topic], drainMs: 4000 }, quick).start()
    await until('both', stable([a, b], 2))
    expect(events).toEqual(['drained', 'joined'])
    expect(await tools.committed(group, topic)).toMatchObject({ 0: '1' })
    expect(a.assigned.at(-1)?.kept).toHaveLength(1)
  })

  test('a drain that never ends is cut at its bound, and heartbeats kept the membership all the while', async () => {
    const topic = await tools.topic(2)
    const group = newGroup()
    const a = await new Member(
      brokers,
      { group, topics: [topic], drainMs: 4000 },
      { sessionMs: 6000, heartbeatMs: 300 },
    ).start()
    let oldestLeaseMs = 0
    a.revoke = async ({ deadlineMs }) => {
      while (performance.now() < deadlineMs - 100) {
        await sleep(50)
        oldestLeaseMs = Math.max(oldestLeaseMs, a.consumer.leaseAgeMs())
      }
      return new Promise(() => {})
    }
    const began = performance.now()
    const b = await new Member(brokers, { group, topics: [topic], drainMs: 4000 }, quick).start()
    await until('both', stable([a, b], 2))
    const ms = performance.now() - began
    expect(ms).toBeGreaterThan(3900)
    expect(ms).toBeLessThan(6000)
    expect(oldestLeaseMs).toBeLessThan(1500)
    expect(a.assigned.at(-1)?.kept).toHaveLength(1)
    expect(a.observer.named('consumer.drain_timeout')).toHaveLength(1)
  })

  test('batches stop with the revoking: none is handed over until the next assignment', async () => {
    const topic = await tools.topic(2)
    const group = newGroup()
    const a = await new Member(brokers, { group, topics: [topic], drainMs: 3000 }, quick).start()
    let during = -1
    a.revoke = async () => {
      const before = a.batches.length
      a.consumer.resume(a.owned)
      await tools.send(topic, 0, 'x')
      await tools.send(topic, 1, 'y')
      await sleep(400)
      during = a.batches.length - before
    }
    const b = await new Member(brokers, { group, topics: [topic], drainMs: 3000 }, quick).start()
    await until('both records', () => a.values.length + b.values.length === 2)
    expect(during).toBe(0)
    expect([...a.values, ...b.values].sort()).toEqual(['x', 'y'])
  })
})

describe('lost membership', () => {
  test('an evicted member is told `lost`, may not commit, keeps nothing, and is a member again', async () => {
    const topic = await tools.topic(2)
    const group = newGroup()
    const a = await new Member(
      brokers,
      { group, topics: [topic], drainMs: 2000 },
      { ...quick, heartbeatMs: 1000 },
    ).start()
    const { groups } = await tools.admin.describeGroups([group])
    let refused: unknown
    a.revoke = async () => {
      refused = await a.consumer.commit([{ topic, partition: 0, offset: 1, metadata: '' }]).catch((error) => error)
    }
    await leaveInTheNameOf(group, groups[0]?.members[0]?.memberId as string)
    await until('the second join', () => a.assigned.length === 2)
    expect(a.revoked).toMatchObject([{ lost: true }])
    expect(refused).toMatchObject({ code: 'consumer.failed' })
    expect(a.assigned[1]).toMatchObject({ kept: [] })
    expect(a.assigned[1]?.gained).toHaveLength(2)
    expect(a.assigned[1]?.lost).toHaveLength(2)
    expect(await tools.committed(group, topic)).toMatchObject({ 0: '-1' })
  })
})

/** What the coordinator does when a session runs out, without the wait. */
async function leaveInTheNameOf(group: string, memberId: string): Promise<void> {
  const observer = { log() {}, count() {}, time() {} }
  const link = new KafkaClient(
    { brokers: brokers.split(','), clientId: 'other' },
    { clock: realClock, observer },
  ).link()
  await link.request(await link.coordinator('group', group), 'LeaveGroup', { groupId: group, memberId })
  link.close()
}

describe('lanes under load', () => {
  test('members 1→2→3→2 with work of 50–300 ms outside of the handlers: nothing lost, nothing twice, kept lanes go on', async () => {
    const topics = [await tools.topic(12), await tools.topic(12)]
    const group = newGroup()
    const done = new Done()
    let sent = 0
    const workers: Worker[] = []
    const start = async (): Promise<Worker> => {
      const worker = new Worker(group, topics, done)
      workers.push(worker)
      await worker.member.start()
      return worker
    }
    let producing = true
    const produce = (async () => {
      while (producing) {
        for (const topic of topics) {
          const messages = Array.from({ length: 12 }, (_, partition) => ({ partition, value: `${sent++}` }))
          await tools.producer.send({ topic, messages })
        }
        await sleep(80)
      }
    })()
    await start()
    await sleep(700)
    const second = await start()
    await sleep(1200)
    await start()
    await sleep(1200)
    await second.stop()
    await sleep(800)
    producing = false
    await produce
    await until('everything done', () => done.values.size === sent, 20_000)
    const twice = [...done.times.values()].filter((n) => n > 1).length
    const kept = workers.reduce((n, w) => n + w.member.assigned.reduce((k, a) => k + a.kept.length, 0), 0)
    for (const worker of workers) await worker.stop()
    expect({ lost: sent - done.values.size, twice }).toEqual({ lost: 0, twice: 0 })
    expect(sent).toBeGreaterThan(500)
    // 1→2 keeps 12 of 24, 2→3 keeps 16, 3→2 keeps 16.
    expect(kept).toBe(44)
  }, 60_000)
})

/** How often each record was worked on, by its place in the log: the producer of the test may write a value twice. */
class Done {
  readonly times = new Map<string, number>()
  readonly values = new Set<string>()
  add(at: string, value: string): void {
    this.times.set(at, (this.times.get(at) ?? 0) + 1)
    this.values.add(value)
  }
}

/** The pipeline in small: works outside of the handler, commits what is done in order, drains when told to. */
class Worker {
  readonly member: Member
  readonly #done: Done
  readonly #topics: readonly string[]
  readonly #group: string
  #open = new Map<string, { next: number; undone: Set<number>; epoch: number }>()
  #timer: NodeJS.Timeout

  constructor(group: string, topics: readonly string[], done: Done) {
    this.#group = group
    this.#topics = topics
    this.#done = done
    this.member = new Member(brokers, { group, topics, drainMs: 3000 }, quick)
    this.member.assign = ({ gained, kept, lost }) => {
      for (const at of lost) this.#open.delete(key(at))
      this.member.consumer.resume(kept)
      void this.#gain(gained, this.member.assigned.length)
    }
    this.member.batch = (batch) => {
      const state = this.#open.get(key(batch))
      if (state === undefined) throw new Error(`batch of ${key(batch)}, which is not owned`)
      for (const { offset, value } of batch.records) {
        if (offset < state.next) throw new Error(`offset ${offset} of ${key(batch)} came again`)
        state.undone.add(offset)
        setTimeout(
          () => {
            state.undone.delete(offset)
            this.#done.add(`${key(batch)}@${offset}`, String(value))
          },
          50 + Math.random() * 250,
        )
      }
      state.next = batch.nextOffset
    }
    this.member.revoke = () => this.#drain()
    this.#timer = setInterval(() => void this.#commit().catch(() => {}), 200)
  }

  async #gain(gained: readonly TopicPartition[], epoch: number): Promise<void> {
    const committed = new Map<string, number>()
    for (const topic of this.#topics)
      for (const [partition, offset] of Object.entries(await tools.committed(this.#group, topic)))
        committed.set(`${topic}/${partition}`, Math.max(0, Number(offset)))
    if (epoch !== this.member.assigned.length) return
    for (const at of gained) {
      const next = committed.get(key(at)) ?? 0
      this.#open.set(key(at), { next, undone: new Set(), epoch })
      this.member.consumer.seek(at, next)
    }
    this.member.consumer.resume(gained)
  }

  async #commit(): Promise<void> {
    const offsets = [...this.#open].map(([at, { next, undone }]) => {
      const [topic, partition] = at.split('/') as [string, string]
      return { topic, partition: Number(partition), offset: Math.min(next, ...undone), metadata: '' }
    })
    await this.member.consumer.commit(offsets)
  }

  async #drain(): Promise<void> {
    await until('drained', () => [...this.#open.values()].every((state) => state.undone.size === 0), 2500)
    await this.#commit()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.member.consumer.pause(this.member.owned)
    await this.#drain().catch(() => {})
    await this.member.consumer.stop()
  }
}
