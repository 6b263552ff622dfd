import { expect, test } from 'vitest'
import type { Job } from '../../src/core/job.ts'
import { emptyHeaders } from '../../src/core/record.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { JobReached } from '../../src/pipeline/job-reached.ts'
import type { LogReader } from '../../src/ports.ts'

const job = { id: 'j' } as Job
const subscription = { id: 'm' } as Subscription

/** One attempt a record, all delivered; each fetch waits to be let go on. */
function world(count: number) {
  let fetches = 0
  let fail = false
  let go: () => void = () => undefined
  const reader = {
    starts: async () => new Map([[0, 0]]),
    ends: async () => new Map([[0, count]]),
    async fetch({ from }: { from: number }) {
      fetches++
      await new Promise<void>((resolve) => {
        go = resolve
      })
      if (fail) throw new Error('the broker is away')
      const fields = { deliveryId: `msg_${from}`, subscriptionId: 'm', settlement: 'done' }
      const record = {
        offset: from,
        timestampMs: 0,
        key: Buffer.from('m'),
        value: Buffer.from(JSON.stringify(fields)),
        headers: emptyHeaders,
      }
      return { topic: 'attempts', partition: 0, records: [record], nextOffset: from + 1, highWatermark: count }
    },
  }
  const next = async () => {
    await settled()
    go()
    await settled()
  }
  return {
    reached: new JobReached(reader as unknown as LogReader, 'attempts', 1),
    next,
    fetches: () => fetches,
    fail: (now: boolean) => {
      fail = now
    },
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

test('nobody waits for the reading: asked again it says when it is there, and it is read once', async () => {
  const { reached, next, fetches } = world(3)
  expect(reached.of(job, subscription)).toEqual({ t: 'reading' })
  await next()
  expect(reached.of(job, subscription)).toEqual({ t: 'reading' })
  await next()
  await next()
  const found = reached.of(job, subscription)
  expect(found.t === 'known' && [found.ids.has('msg_0'), found.ids.has('msg_2'), found.ids.has('msg_3')]).toEqual([
    true,
    true,
    false,
  ])
  expect(fetches()).toBe(3)
})

test('a job that is worked here no more is not read on', async () => {
  const { reached, next, fetches } = world(100)
  reached.of(job, subscription)
  await next()
  reached.keep(new Set())
  await next()
  await next()
  expect(fetches()).toBe(2)
})

test('a reading that failed is told once, then begun again', async () => {
  const { reached, next, fail } = world(1)
  reached.of(job, subscription)
  fail(true)
  await next()
  expect(() => reached.of(job, subscription)).toThrow('the broker is away')
  fail(false)
  expect(reached.of(job, subscription)).toEqual({ t: 'reading' })
  await next()
  expect(reached.of(job, subscription).t).toBe('known')
})
