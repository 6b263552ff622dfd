import { describe, expect, test } from 'vitest'
import { type DeadLetter, decodeDead } from '../../src/core/dead-letter.ts'
import { decodeDelivery, encodeDelivery } from '../../src/core/delivery.ts'
import { HooktideError } from '../../src/core/error.ts'
import { emptyHeaders, type OutRecord } from '../../src/core/record.ts'
import { type RedriveOptions, redrive } from '../../src/operations/dead-redrive.ts'
import type { Producer } from '../../src/ports.ts'
import { FakeClock } from '../sim/fake-clock.ts'

function letter(n: number, id = `d${n}`, subscriptionId = 's'): DeadLetter {
  const headers = encodeDelivery({
    id,
    subscriptionId,
    tenant: 'default',
    eventId: 'e',
    eventType: 't',
    contentType: 'text/plain',
    orderingKey: null,
    origin: { stream: 'events/0', generation: 1, offset: n },
    eventTimeMs: 0,
    attempts: 8,
    dueMs: null,
    lastError: '503',
    traceparent: null,
  })
  return decodeDead(3, {
    offset: n,
    timestampMs: 0,
    key: Buffer.from(subscriptionId),
    value: Buffer.from('x'),
    headers,
  })
}

const unreadable = decodeDead(3, { offset: 9, timestampMs: 0, key: null, value: null, headers: emptyHeaders })

async function* each(letters: readonly DeadLetter[]) {
  yield* letters
}

function world(given: Partial<RedriveOptions> & { failAt?: number } = {}) {
  const { failAt, ...more } = given
  const clock = new FakeClock()
  const sent: { atMs: number; records: readonly OutRecord[] }[] = []
  const producer: Producer = {
    async send(records) {
      if (sent.length === failAt) throw new HooktideError('producer.failed', 'the broker went away')
      sent.push({ atMs: clock.mono(), records })
      return []
    },
    close: async () => undefined,
  }
  const options: RedriveOptions = {
    job: 'j1',
    deliveriesTopic: 'deliveries',
    lanes: 4,
    perSecond: null,
    dryRun: false,
    clock,
    signal: new AbortController().signal,
    progress: { update: () => undefined, end: () => undefined },
    isKnown: (id) => id !== 'gone',
    ...more,
  }
  const run = (letters: readonly DeadLetter[]) => redrive(each(letters), producer, options)
  const origins = () =>
    sent.flatMap(({ records }) =>
      records.map(({ headers, value }) => {
        const decoded = decodeDelivery({ headers, value })
        return decoded.ok ? `${decoded.value.id} ${decoded.value.origin.stream} ${decoded.value.origin.offset}` : ''
      }),
    )
  return { clock, sent, run, origins }
}

describe('redrive', () => {
  test('offsets of the job count only what is sent; repeated, unreadable and orphaned ones are counted apart', async () => {
    const { run, origins } = world()
    const result = await run([letter(1), letter(2, 'd1'), unreadable, letter(10, 'x', 'gone'), letter(11)])
    expect(result).toEqual({
      met: new Set(['d1', 'x', 'd11']),
      redriven: 2,
      repeated: 1,
      unreadable: 1,
      orphaned: 1,
      next: { partition: 3, offset: 12 },
    })
    expect(origins()).toEqual(['d1 redrive:j1 0', 'd11 redrive:j1 1'])
  })

  test('a failure says how many were sent and from which cursor to go on', async () => {
    const { run } = world({ failAt: 1 })
    const letters = Array.from({ length: 250 }, (_, n) => letter(n))
    const error = (await run(letters).catch((e: unknown) => e)) as HooktideError
    expect(error.message).toBe('job j1 stopped after 200: the broker went away')
    expect(error.remedy).toContain('--cursor 3/200')
  })

  test('a rate spreads them over time', async () => {
    const { clock, run, sent } = world({ perSecond: 10 })
    await clock.drive(run([0, 1, 2, 3].map((n) => letter(n))))
    expect(sent.map(({ atMs }) => Math.round(atMs - (sent[0]?.atMs ?? 0)))).toEqual([0, 100, 200, 300])
  })

  test('an interruption ends it with what is acknowledged and where to go on', async () => {
    const end = new AbortController()
    const { clock, run, sent } = world({ perSecond: 1, signal: end.signal })
    const running = run([0, 1, 2].map((n) => letter(n)))
    await clock.advance(500)
    end.abort()
    const result = await clock.drive(running)
    expect(result).toMatchObject({ redriven: 1, next: { partition: 3, offset: 1 } })
    expect(sent).toHaveLength(1)
  })

  test('a dry run counts and sends nothing', async () => {
    const { run, sent } = world({ dryRun: true })
    expect(await run([letter(1), letter(2)])).toMatchObject({ redriven: 2 })
    expect(sent).toEqual([])
  })
})
