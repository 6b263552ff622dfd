import { describe, expect, test } from 'vitest'
import type { FetchedBatch } from '../../src/core/record.ts'
import { GroupFetcher } from '../../src/kafka/group-fetcher.ts'
import type { GroupLink } from '../../src/kafka/group-link.ts'
import { GroupPartitions } from '../../src/kafka/group-partitions.ts'
import { realClock } from '../support/clock.ts'
import { Recorder, until } from './group-support.ts'

const topic = 't'
const refused = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

/** Two brokers: 1 leads partition 0, 2 leads partition 1. What a fetch of either does is the test's. */
function world(fetch: (node: number, from: number) => Promise<object>, refresh: () => Promise<void> = async () => {}) {
  const partitions = new GroupPartitions()
  const owned = [0, 1].map((partition) => ({ topic, partition }))
  partitions.replace(owned, false)
  for (const at of owned) partitions.seek(at, 0)
  for (const p of partitions.all()) p.paused = false
  const batches: FetchedBatch[] = []
  const broken: unknown[] = []
  const observer = new Recorder()
  let refreshes = 0
  const link = {
    leaderOf: (_: string, partition: number) => partition + 1,
    node: async (id: number) => id,
    refresh: async () => {
      refreshes++
      await refresh()
    },
    call: async (
      node: number,
      _api: string,
      args: { topics: { partitions: { partition: number; fetchOffset: string }[] }[] },
    ) => {
      const [asked] = args.topics.flatMap((t) => t.partitions)
      const answer = await fetch(node, Number(asked?.fetchOffset))
      return {
        responses: [{ topicName: topic, partitions: [{ partition: asked?.partition, errorCode: 0, ...answer }] }],
      }
    },
  } as unknown as GroupLink
  const handlers = { onBatch: (batch: FetchedBatch) => void batches.push(batch) }
  const fetcher = new GroupFetcher(
    partitions,
    { maxWaitMs: 10, maxBytes: 1000, maxBytesPerPartition: 1000 },
    { clock: realClock, observer, group: 'g' },
    handlers as never,
    { broken: (_link, error) => void broken.push(error), fatal: (error) => void broken.push(error) },
  )
  fetcher.use(link)
  return { fetcher, batches, broken, observer, refreshes: () => refreshes }
}

const record = async (from: number) => {
  await new Promise((resolve) => setTimeout(resolve, 10))
  const batch = { baseOffset: from, nextOffset: from + 1, producerId: -1, transactional: false, control: null }
  return {
    highWatermark: String(from + 1),
    abortedTransactions: null,
    messages: { bytes: 1, batches: [{ ...batch, records: [], undecodable: [] }] },
  }
}

describe('several brokers', () => {
  test('one of them down: the others are read on, the link lives, and it is two lines in all', async () => {
    let down = true
    const { fetcher, batches, broken, observer } = world(async (node, from) => {
      if (node === 2 && down) throw refused()
      return record(from)
    })
    await until('the line', () => observer.named('consumer.broker_unreachable').length === 1)
    const read = batches.length
    await until('more of the other', () => batches.length > read + 5)
    expect(batches.every((b) => b.partition === 0)).toBe(true)
    down = false
    await until('the second', () => batches.some((b) => b.partition === 1))
    fetcher.use(undefined)
    expect(broken).toEqual([])
    expect(observer.lines.map((l) => l.name)).toEqual(['consumer.broker_unreachable', 'consumer.broker_reached'])
  })

  test('all of them down: the link is broken once, and nothing is asked of it any more', async () => {
    let asked = 0
    const { broken, refreshes } = world(
      async () => {
        asked++
        throw refused()
      },
      async () => {
        throw refused()
      },
    )
    await until('broken', () => broken.length === 1)
    const before = asked
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(asked).toBe(before)
    expect(broken).toHaveLength(1)
    expect(refreshes()).toBeLessThanOrEqual(2)
  })
})
