import { describe, expect, test } from 'vitest'
import type { PartRange } from '../../src/core/job.ts'
import { JobsWorld, jobFaults, partitions, replayJob } from './jobs-world.ts'
import { between } from './random.ts'

/** More with HOOKTIDE_JOB_SEEDS=200. */
const seedCount = Number(process.env.HOOKTIDE_JOB_SEEDS ?? 12)
const all = (ends: readonly number[]) =>
  new Map<string, PartRange>(ends.map((to, p) => [`events/${p}`, { from: 0, to }]))
const untilLive = new Map<string, PartRange>(
  Array.from({ length: partitions }, (_, p) => [`events/${p}`, { from: 0, to: null }]),
)
const seeds = Array.from({ length: seedCount }, (_, i) => i + 1)

/** Each event once, and those of one partition in their order. */
function expectExactly(run: JobsWorld, subscription: string): void {
  const counted = run.counted(subscription)
  for (let p = 0; p < partitions; p++) {
    const own = counted.filter(({ partition }) => partition === p).map(({ event }) => event)
    expect(own, `partition ${p}, ${run.logs.slice(-40).join('\n')}`).toEqual(run.produced[p])
  }
}

describe('a new subscription is backfilled while events come in', () => {
  test.each(seeds)('seed %i: each event once, in order, whatever crashes, stalls or fails', async (seed) => {
    const run = await new JobsWorld(seed, jobFaults).start('a', 'z')
    const { world, random } = run
    const flow = run.flow(between(random, 5, 60))
    await world.clock.advance(between(random, 500, 12_000))
    await run.give(replayJob({ untilLive: true, atMs: world.clock.now(), parts: untilLive }))
    await world.clock.advance(between(random, 0, 500))
    await run.subscribe('m')
    await world.clock.advance(between(random, 2_000, 15_000))
    run.quiet()
    await world.clock.advance(between(random, 0, 3_000))
    await flow.stop()
    expect(await run.settled('j1'), run.logs.slice(-40).join('\n')).toBe(true)
    expectExactly(run, 'm')
    const streams = new Set(run.counted('m').map(({ stream }) => stream))
    expect([...streams].filter((stream) => stream.startsWith('job:')).length).toBeGreaterThan(0)
    for (const id of ['a', 'z']) expectExactly(run, id)
  })

  test('what comes after the hand-over is written by the router, and nothing waits for the job any more', async () => {
    const run = await new JobsWorld(3).start('a')
    for (let i = 0; i < 50; i++) for (let p = 0; p < partitions; p++) await run.world.clock.drive(run.produce(p))
    await run.give(replayJob({ untilLive: true, atMs: run.world.clock.now(), parts: untilLive }))
    await run.subscribe('m')
    expect(await run.settled('j1')).toBe(true)
    for (let i = 0; i < 10; i++) for (let p = 0; p < partitions; p++) await run.world.clock.drive(run.produce(p))
    await run.world.clock.advance(2_000)
    expectExactly(run, 'm')
    const live = run.counted('m').filter(({ stream }) => stream.startsWith('events/'))
    expect(live).toHaveLength(10 * partitions)
  })

  test('a subscription that never comes: the job fails and says so', async () => {
    const run = await new JobsWorld(4).start('a')
    await run.world.clock.drive(run.produce(0))
    await run.give(replayJob({ untilLive: true, atMs: run.world.clock.now(), parts: untilLive }))
    expect(await run.settled('j1')).toBe(true)
    const { jobs } = run
    const job = jobs.get('j1')
    expect(job !== undefined && jobs.state(job)).toBe('failed')
    expect(jobs.part('j1', 'events/0')?.error).toBe('there is no subscription m')
  })
})

describe('a replay', () => {
  test('of what is missing only: what was delivered is passed over, the rest is sent once', async () => {
    const run = await new JobsWorld(5).start('a')
    const { world } = run
    for (let i = 0; i < 20; i++) for (let p = 0; p < partitions; p++) await world.clock.drive(run.produce(p))
    await world.clock.advance(2_000)
    const before = run.produced.map((names) => [...names])
    await run.subscribe('m')
    for (let i = 0; i < 20; i++) for (let p = 0; p < partitions; p++) await world.clock.drive(run.produce(p))
    await world.clock.runUntil(() => world.drained())
    const live = run.counted('m').length
    expect(live).toBe(20 * partitions)
    await run.give(replayJob({ parts: all(run.ends()), filter: { onlyMissing: true } }))
    expect(await run.settled('j1')).toBe(true)
    const replayed = run.counted('m').filter(({ stream }) => stream.startsWith('job:'))
    for (let p = 0; p < partitions; p++) {
      expect(replayed.filter(({ partition }) => partition === p).map(({ event }) => event)).toEqual(before[p])
    }
    const parts = Array.from({ length: partitions }, (_, p) => run.jobs.part('j1', `events/${p}`))
    expect(parts.map((part) => [part?.written, part?.passed])).toEqual(parts.map(() => [20, 20]))
  })

  test.each(seeds.slice(0, 8))('seed %i: each event once more, whatever crashes, stalls or fails', async (seed) => {
    const run = await new JobsWorld(seed, jobFaults).start('a', 'm', 'z')
    const flow = run.flow(20)
    await run.world.clock.advance(6_000)
    const ends = run.ends()
    const before = run.produced.map((names) => names.length)
    await run.give(replayJob({ parts: all(ends) }))
    await run.world.clock.advance(between(run.random, 2_000, 10_000))
    run.quiet()
    await flow.stop()
    expect(await run.settled('j1'), run.logs.slice(-40).join('\n')).toBe(true)
    const job = run.counted('m').filter(({ stream }) => stream.startsWith('job:j1:'))
    for (let p = 0; p < partitions; p++) {
      const own = job.filter(({ partition }) => partition === p).map(({ sequence }) => sequence)
      // Gaps of other producers' markers take offsets: what was there at the time is a prefix.
      expect(own).toEqual(own.map((_, i) => i))
      expect(own.length).toBeGreaterThanOrEqual((before[p] as number) - 2)
    }
  })

  test('a rate is kept over all partitions, and a cancel ends it within a second', async () => {
    const run = await new JobsWorld(5).start('m')
    for (let i = 0; i < 300; i++) for (let p = 0; p < partitions; p++) await run.world.clock.drive(run.produce(p))
    await run.world.clock.advance(1_000)
    const job = replayJob({ parts: all(run.ends()), perSecond: 20 })
    await run.give(job)
    const byJob = () => run.counted('m').filter(({ stream }) => stream.startsWith('job:')).length
    await run.world.clock.advance(10_000)
    const then = byJob()
    expect(then).toBeGreaterThan(150)
    expect(then).toBeLessThanOrEqual(20 * 11)
    await run.give({ ...job, cancelledBy: 'eve' })
    await run.world.clock.advance(1_000)
    const { jobs } = run
    const found = jobs.get('j1')
    expect(found !== undefined && jobs.state(found)).toBe('cancelled')
    const atCancel = byJob()
    expect(atCancel - then).toBeLessThanOrEqual(20)
    await run.world.clock.advance(10_000)
    expect(byJob()).toBe(atCancel)
  })

  test('all workers die in the middle: the job goes on where it was, and writes nothing twice that counts', async () => {
    const run = await new JobsWorld(6).start('m')
    for (let i = 0; i < 200; i++) for (let p = 0; p < partitions; p++) await run.world.clock.drive(run.produce(p))
    await run.world.clock.advance(1_000)
    await run.give(replayJob({ parts: all(run.ends()), perSecond: 50 }))
    await run.world.clock.advance(3_300)
    run.world.holdAll()
    await run.world.clock.advance(1_000)
    run.world.startAll()
    expect(await run.settled('j1')).toBe(true)
    const job = run.counted('m').filter(({ stream }) => stream.startsWith('job:'))
    expect(job.map(({ event }) => event).sort()).toEqual(run.produced.flat().sort())
    expect(run.logs.filter((line) => line.includes('job.part_started')).length).toBeGreaterThan(partitions)
  })
})
