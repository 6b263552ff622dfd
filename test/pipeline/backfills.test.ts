import { expect, test } from 'vitest'
import type { Control } from '../../src/core/control.ts'
import { type Job, jobControl, type PartProgress, progressControl } from '../../src/core/job.ts'
import { JobTable } from '../../src/core/job-table.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { Backfills } from '../../src/pipeline/backfills.ts'
import { JobLog } from '../../src/pipeline/job-log.ts'
import { FakeClock } from '../sim/fake-clock.ts'
import { replayJob } from '../sim/jobs-world.ts'

const stream = 'events/0'
const job: Job = replayJob({ untilLive: true, parts: new Map([[stream, { from: 0, to: null }]]) })
const start: PartProgress = {
  ...{ state: 'running', next: 0, written: 0, passed: 0, unreadable: 0 },
  ...{ cut: null, generation: null, error: null },
}
const mine = { id: 'm', tenant: 'default' } as Subscription
const other = { id: 'a', tenant: 'default' } as Subscription

/** A process that has not read `control` since the start: it reads what was written when it is told to, not by itself. */
function world() {
  const jobs = new JobTable()
  const written: Control[] = []
  let applied = 0
  const clock = new FakeClock()
  const control = {
    jobs,
    async freshen() {
      for (; applied < written.length; applied++) {
        const record = written[applied] as Control
        jobs.apply(`job:${record.target}`, record)
      }
    },
    onJob: () => () => undefined,
  }
  const subscriptions = { version: 1 }
  const log = new JobLog({
    ...{ control, topic: 'control', clock },
    reader: { ends: async () => new Map([[0, 70]]) } as never,
    producer: {
      async send([record]: { value: Buffer }[]) {
        written.push(JSON.parse(String(record?.value)))
        return []
      },
    } as never,
  })
  return { jobs, written, clock, subscriptions, log, backfills: new Backfills({ log, clock, subscriptions }) }
}

const ready = ({ backfills }: ReturnType<typeof world>, last: number) => backfills.ready(stream, 5, last, () => false)
const live = ({ backfills }: ReturnType<typeof world>, offset: number, generation = 5) =>
  backfills.live([other, mine], { stream, generation, offset }).map(({ id }) => id)

test('who learns of a subscription reads of its job before it matches, and leaves it out', async () => {
  const run = world()
  expect(await ready(run, 10)).toBe(true)
  expect(live(run, 10)).toEqual(['a', 'm'])
  run.written.push(jobControl(job))
  run.subscriptions.version++
  expect(await ready(run, 11)).toBe(true)
  expect(live(run, 11)).toEqual(['a'])
})

test('who finds that a part is closing settles the cut itself, and waits when it comes to it until the job is done', async () => {
  const run = world()
  run.written.push(jobControl(job))
  await ready(run, 10)
  run.written.push(progressControl(job, stream, { ...start, state: 'closing', next: 60 }, 0))
  expect(await ready(run, 69)).toBe(true)
  expect(run.jobs.part('j1', stream)).toMatchObject({ cut: 70, generation: 5 })
  expect([live(run, 69), live(run, 70)]).toEqual([['a'], ['a', 'm']])

  let through = false
  const waiting = ready(run, 70).then((is) => {
    through = is
  })
  await run.clock.advance(1_000)
  expect(through).toBe(false)
  run.written.push(progressControl(job, stream, { ...start, state: 'done', next: 70, cut: 70, generation: 5 }, 0))
  await run.log.control.freshen()
  await run.clock.drive(waiting)
  expect(through).toBe(true)
})

test('a wait is given up when the stream is held', async () => {
  const run = world()
  run.written.push(jobControl(job))
  run.written.push(progressControl(job, stream, { ...start, state: 'closing', cut: 5, generation: 5 }, 0))
  expect(await run.clock.drive(run.backfills.ready(stream, 5, 9, () => true))).toBe(false)
})

test('the first cut counts; a late record takes nothing back', async () => {
  const run = world()
  run.written.push(jobControl(job))
  for (const next of [
    { ...start, state: 'closing', cut: 5, generation: 5 },
    { ...start, state: 'closing', cut: 9, generation: 6 },
    { ...start, state: 'done', next: 5 },
    { ...start, state: 'running', next: 3 },
  ] as const) {
    run.written.push(progressControl(job, stream, next, 0))
  }
  await run.log.control.freshen()
  expect(run.jobs.part('j1', stream)).toMatchObject({ state: 'done', next: 5, cut: 5, generation: 5 })
})

test('in another generation of the stream everything is wanted again; so it is without a job, and for another tenant of the same id', async () => {
  const run = world()
  run.written.push(jobControl({ ...job, tenant: 'acme' }))
  await run.log.control.freshen()
  expect(live(run, 0)).toEqual(['a', 'm'])
  run.written.push(jobControl(job))
  run.written.push(progressControl(job, stream, { ...start, state: 'closing', cut: 5, generation: 5 }, 0))
  await run.log.control.freshen()
  expect([live(run, 0), live(run, 0, 6)]).toEqual([['a'], ['a', 'm']])
  run.jobs.apply('job:j1', null)
  expect(live(run, 0)).toEqual(['a', 'm'])
})
