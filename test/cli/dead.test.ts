import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bodyPreview } from '../../src/cli/dead-view.ts'
import { type Delivery, deadHeader, decodeDelivery, encodeDelivery, lineHeader } from '../../src/core/delivery.ts'
import { partitionOf } from '../../src/core/partition.ts'
import type { OutRecord } from '../../src/core/record.ts'
import type { Cluster } from '../../src/operations/cluster.ts'
import { readTopic } from '../../src/operations/read-topic.ts'
import { clusterOf, hooktide, ownWorld } from './support.ts'

const lanes = 2
let env: Record<string, string>
let cluster: Cluster
let topics: { dead: string; deliveries: string }
beforeAll(async () => {
  env = await ownWorld()
  topics = { dead: `${env.HOOKTIDE_TOPICS_PREFIX}dead`, deliveries: `${env.HOOKTIDE_TOPICS_PREFIX}deliveries` }
  for (const id of ['s1', 's2']) {
    await hooktide(['subscriptions', 'add', '--id', id, '--url', 'https://example.com', '--secret', 'env:A'], { env })
  }
  cluster = clusterOf(env)
  const producer = cluster.kafka.producer()
  const t0 = Date.parse('2026-01-01T00:00:00Z')
  await producer.send([
    dead('d1', 's1', 'exhausted', t0, 0),
    dead('d2', 's1', 'rejected', t0 + 60_000, 1),
    dead('d1', 's1', 'exhausted', t0 + 120_000, 2),
    dead('d3', 's2', 'gone', t0 + 180_000, 0),
    dead('d4', 'left', 'gone', t0 + 180_000, 0),
  ])
})
afterAll(() => cluster.close())

function dead(id: string, subscriptionId: string, reason: string, atMs: number, offset: number): OutRecord {
  const delivery: Omit<Delivery, 'body'> = {
    id,
    subscriptionId,
    tenant: 'default',
    eventId: `e-${id}`,
    eventType: 'order.paid',
    contentType: 'application/json',
    orderingKey: 'k',
    origin: { stream: 'events/0', generation: 5, offset },
    eventTimeMs: atMs - 1000,
    attempts: 8,
    dueMs: null,
    lastError: '503',
    traceparent: null,
  }
  const headers = encodeDelivery(delivery)
  headers[deadHeader.reason] = Buffer.from(reason)
  headers[deadHeader.atMs] = Buffer.from(String(atMs))
  headers[lineHeader] = Buffer.from(`${subscriptionId} k k`)
  headers.extra = Buffer.from('kept')
  const value = Buffer.from(`{"id":"${id}"}`)
  return { topic: topics.dead, partition: partitionOf(subscriptionId, lanes), key: subscriptionId, value, headers }
}

async function redriven() {
  const found = []
  for await (const { partition, record } of readTopic(cluster.kafka.reader(), topics.deliveries)) {
    const decoded = decodeDelivery(record)
    if (!decoded.ok) throw new Error(decoded.reason)
    found.push({ partition, key: String(record.key), names: Object.keys(record.headers), delivery: decoded.value })
  }
  return found
}

const run = (...args: string[]) => hooktide(['dead', ...args], { env })

describe('dead letters on a real broker', () => {
  test('list: filters, a stable shape, pages by cursor', async () => {
    const all = JSON.parse((await run('list', '--json')).out)
    expect(all.dead).toHaveLength(5)
    expect(all.cursor).toBeNull()
    const d2 = JSON.parse((await run('list', '--subscription', 's1', '--reason', 'rejected', '--json')).out)
    expect(d2.dead).toEqual([
      {
        deliveryId: 'd2',
        subscriptionId: 's1',
        tenant: 'default',
        eventId: 'e-d2',
        eventType: 'order.paid',
        contentType: 'application/json',
        orderingKey: 'k',
        attempts: 8,
        reason: 'rejected',
        error: '503',
        deadAtMs: Date.parse('2026-01-01T00:01:00Z'),
        eventTimeMs: Date.parse('2026-01-01T00:00:59Z'),
        origin: 'events/0:5:1',
        bytes: 11,
        partition: partitionOf('s1', lanes),
        offset: 1,
      },
    ])
    const since = JSON.parse((await run('list', '--since', '2026-01-01T00:02:30Z', '--json')).out)
    expect(since.dead.map(({ deliveryId }: { deliveryId: string }) => deliveryId).sort()).toEqual(['d3', 'd4'])
    expect((await run('list', '--since', '1h')).out).toBe('No dead letters.\n')

    const ids: string[] = []
    let cursor: string | null = '0/0'
    while (cursor !== null) {
      const page: { dead: { deliveryId: string }[]; cursor: string | null } = JSON.parse(
        (await run('list', '--limit', '2', '--cursor', cursor, '--json')).out,
      )
      ids.push(...page.dead.map(({ deliveryId }) => deliveryId))
      cursor = page.cursor
    }
    expect(ids).toEqual(all.dead.map(({ deliveryId }: { deliveryId: string }) => deliveryId))
  })

  test('the table fits 100 columns', async () => {
    const { out } = await run('list')
    expect(out).toContain('01-01 00:01:00Z')
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  })

  test('show: by id the last death, by place exactly that one; the body as it was', async () => {
    const shown = await run('show', 'd1')
    expect(shown.out).toContain('died 2 times; this is the last')
    expect(shown.out).toContain('  extra: kept')
    expect(shown.out).toContain('body\n  {"id":"d1"}')
    expect((await run('show', `${partitionOf('s1', lanes)}/1`, '--body')).out).toBe('{"id":"d2"}')
    expect(await run('show', 'd9')).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no dead letter d9'),
    })
    expect((await run('show', '1/99')).code).toBe(1)
  })

  test('redrive: dry run writes nothing; then the ids are kept, attempts are 0, offsets of the job rise in order', async () => {
    const dry = await run('redrive', '--all', '--dry-run')
    expect(dry).toMatchObject({ code: 0, out: expect.stringContaining('3 dead letters would be redriven') })
    expect(await redriven()).toEqual([])

    const { job, ...result } = JSON.parse((await run('redrive', '--all', '--rate', '1000', '--json')).out)
    expect(result).toEqual({
      dryRun: false,
      redriven: 3,
      repeated: 1,
      unreadable: 0,
      orphaned: 1,
      notFound: [],
      interrupted: false,
      cursor: null,
    })
    const found = await redriven()
    expect(found.map(({ delivery }) => delivery.id).sort()).toEqual(['d1', 'd2', 'd3'])
    for (const { partition, key, names, delivery } of found) {
      expect(partition).toBe(partitionOf(key, lanes))
      expect(delivery).toMatchObject({ subscriptionId: key, attempts: 0, dueMs: null, lastError: null })
      expect(delivery.origin).toMatchObject({ stream: `redrive:${job}`, generation: 1 })
      expect(names).toContain('extra')
      for (const gone of [deadHeader.reason, deadHeader.atMs, lineHeader]) expect(names).not.toContain(gone)
    }
    expect(found.map(({ delivery }) => delivery.origin.offset).sort()).toEqual([0, 1, 2])
    const s1 = found.filter(({ key }) => key === 's1').map(({ delivery }) => delivery)
    expect(s1.map(({ id }) => id)).toEqual(['d1', 'd2'])
    expect((s1[0] as Delivery).origin.offset).toBeLessThan((s1[1] as Delivery).origin.offset)
  })

  test('redrive by id exits 1 when an id was not there', async () => {
    const some = await run('redrive', 'd2', 'd9', 'd8', 'd9', '--dry-run')
    expect(some).toMatchObject({ code: 1, err: expect.stringContaining('no dead letters: d9, d8') })
    const { redriven, notFound } = JSON.parse((await run('redrive', 'd2', 'd9', '--dry-run', '--json')).out)
    expect([redriven, notFound]).toEqual([1, ['d9']])
    expect(await run('redrive', 'd2', '--dry-run')).toMatchObject({ code: 0 })
  })
})

test('a body is shown as text where it is one, else as hex; control characters can not move the cursor', () => {
  expect(bodyPreview(Buffer.from('a\u001b[2Jb\nc'))).toBe('  a·[2Jb\n  c')
  expect(bodyPreview(Buffer.from([0xff, 0x00]))).toBe('  ff00')
  // A character cut at the preview's end is left out, not taken for binary.
  expect(bodyPreview(Buffer.from(`${'a'.repeat(2047)}ä`))).toBe(`  ${'a'.repeat(2047)}`)
})
