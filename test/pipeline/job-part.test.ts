import { expect, test } from 'vitest'
import { type Job, type PartProgress, startOf } from '../../src/core/job.ts'
import { emptyHeaders, type InRecord, type OutRecord } from '../../src/core/record.ts'
import { JobPart, type PartDeps } from '../../src/pipeline/job-part.ts'
import { FakeClock } from '../sim/fake-clock.ts'

const bodyBytes = 600
const part = 'events/0'

/** A part over a log of `count` events, at this rate; what it fetched and wrote, by the clock. */
function world(count: number, perSecond: number | null, wanted: (offset: number) => boolean = () => true) {
  const clock = new FakeClock()
  const job = {
    id: 'j',
    kind: 'replay',
    perSecond,
    cancelledBy: null,
    parts: new Map([[part, { from: 0, to: count }]]),
  }
  let progress: PartProgress = startOf({ from: 0, to: count })
  const fetched: number[] = []
  const written: number[] = []
  const jobs = {
    get: () => job as unknown as Job,
    part: () => progress,
    unfinishedParts: () => 1,
    state: () => 'done',
  }
  const record = (offset: number): InRecord => {
    return { offset, timestampMs: 0, key: null, value: Buffer.alloc(bodyBytes), headers: emptyHeaders }
  }
  const deps = {
    log: {
      control: { freshen: async () => undefined, jobs },
      save: async (_: Job, __: string, next: PartProgress) => {
        progress = next
      },
    },
    clock,
    observer: { log: () => undefined, count: () => undefined, time: () => undefined },
    reader: {
      fetch: async ({ from, maxBytes = 0 }: { from: number; maxBytes?: number }) => {
        const nextOffset = Math.min(count, from + Math.max(1, Math.floor(maxBytes / bodyBytes)))
        const records = Array.from({ length: nextOffset - from }, (_, i) => record(from + i))
        fetched.push(...records.map(({ offset }) => offset))
        return { topic: 'events', partition: 0, records, nextOffset, highWatermark: count }
      },
    },
    producer: {
      send: async (records: readonly OutRecord[]) => void written.push(...records.map(({ partition }) => partition)),
    },
    generation: 1,
    work: {
      footing: async () => ({ t: 'ready' }),
      deliveriesOf: (_: Job, { offset }: InRecord) => (wanted(offset) ? [{ partition: offset }] : 'passed'),
    },
    congested: async () => false,
  }
  const run = new JobPart(deps as unknown as PartDeps, 'j', part)
  return { clock, run, fetched, written, progress: () => progress }
}

const all = (count: number) => Array.from({ length: count }, (_, i) => i)

test('what the pace leaves of a batch is not fetched again, and nothing is left out', async () => {
  const { clock, run, fetched, written, progress } = world(3_000, 50)
  const ended = run.run()
  await clock.advance(70_000)
  await ended
  expect(written).toEqual(all(3_000))
  expect(fetched).toEqual(all(3_000))
  expect(progress()).toMatchObject({ state: 'done', next: 3_000, written: 3_000 })
})

test('no more is decoded at once than the pace takes in some seconds, but where little is wanted', async () => {
  const slow = world(2_000, 50)
  void slow.run.run()
  await slow.clock.advance(10_000)
  expect(slow.fetched.length - slow.written.length).toBeLessThan(120)
  await slow.run.stop()
  const rare = world(50_000, 50, (offset) => offset % 1_000 === 0)
  const ended = rare.run.run()
  await rare.clock.advance(10_000)
  await ended
  expect(rare.written.length).toBe(50)
})
