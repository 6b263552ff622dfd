import { randomUUID } from 'node:crypto'
import { encodeDelivery } from '../src/core/delivery.ts'
import { partitionOf } from '../src/core/partition.ts'
import type { OutRecord } from '../src/core/record.ts'
import { createBodies } from './events.ts'
import { answering, punctuality } from './lateness.ts'
import { load } from './machine.ts'
import { Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { World } from './world.ts'

const waiting = 1_000_000
const lanes = 12
const others = 50

/** What waits stands in a tier of an hour, as a move would have written it; meanwhile others come due. */
export const scheduled: Scenario = {
  name: 'scheduled',
  about: `2,000 deliveries come due while none, and while ${waiting} others, wait in a tier of one hour`,
  async run(stage, settings) {
    const rows = new Rows()
    for (const count of [0, waiting]) {
      settings.note(`scheduled, ${count} waiting, load ${load().toFixed(1)}`)
      const world = await World.open(stage, {
        name: 'scheduled',
        topics: {
          lanes,
          tiers: [
            { name: 'retry-500ms', delay: '500ms' },
            { name: 'retry-2s', delay: '2s' },
            { name: 'retry-5s', delay: '5s' },
            { name: 'retry-1h', delay: '1h' },
          ],
        },
        retry: { maxAttempts: 4, base: '10ms', factor: 2, cap: '1s', retryAfterCap: '1m' },
        ...answering,
      })
      try {
        await fill(world, count)
        rows.add(`${count} waiting`, await punctuality(world, settings.deliveries ?? 2_000))
      } finally {
        await world.close()
      }
    }
    const alone = rows.all()[0]?.rounds[0]?.['peak RSS MB']
    return {
      rows: rows.all(),
      targets: [
        { row: `${waiting} waiting`, figure: 'p99 ms', atMost: 200 },
        { row: `${waiting} waiting`, figure: 'early', atMost: 0 },
        { row: `${waiting} waiting`, figure: 'missing', atMost: 0 },
        // Each tier partition holds its fetched head.
        {
          row: `${waiting} waiting`,
          figure: 'peak RSS MB',
          atMost: typeof alone === 'number' ? alone + 60 : Number.NaN,
        },
      ],
    }
  },
}

async function fill(world: World, count: number): Promise<void> {
  const producer = world.kafka.producer()
  const body = createBodies(256)(0, 0, 0)
  const dueMs = Date.now() + 3_600_000
  try {
    for (let from = 0; from < count; from += 5_000) {
      const records = Array.from({ length: Math.min(5_000, count - from) }, (_, i): OutRecord => {
        const subscriptionId = `any${(from + i) % others}`
        const headers = encodeDelivery({
          id: randomUUID(),
          subscriptionId,
          tenant: 'default',
          eventId: `e${from + i}`,
          eventType: subscriptionId,
          contentType: 'application/json',
          orderingKey: null,
          origin: { stream: 'bench', generation: 1, offset: from + i },
          eventTimeMs: dueMs,
          attempts: 1,
          dueMs,
          lastError: 'status 503',
          traceparent: null,
        })
        const partition = partitionOf(subscriptionId, lanes)
        return { topic: `${world.prefix}retry-1h`, partition, key: subscriptionId, value: body, headers }
      })
      await producer.send(records)
    }
  } finally {
    await producer.close()
  }
}
