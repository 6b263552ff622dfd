import fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/app.ts'
import type { StateHome } from '../../src/state/home.ts'
import { QueryStore } from '../../src/state/query-store.ts'
import { buildState } from '../../src/state/rebuild.ts'
import { type DeliveryStory, MemoryLog, play, stories, topics } from './histories.ts'
import { caughtUp, project, projectorOf, until, verify, worldOf } from './state-test.ts'

const done: DeliveryStory['sendings'] = [[{ t: 'end', how: 'done' }]]

function many(count: number): DeliveryStory[] {
  return Array.from({ length: count }, (_, number) => ({ number, subscription: number % 5, sendings: done }))
}

/** What holds for every store. `runs`: of each property. */
export function stateContract(makeHome: () => StateHome, runs: number): void {
  test('what a projector kept, piece by piece, is what a rebuild gives', async () => {
    await fc.assert(
      fc.asyncProperty(stories, stories, async (first, second) => {
        const log = new MemoryLog(3)
        const home = makeHome()
        play(log, first, 'a')
        await project(log, home)
        play(log, second, 'b')
        await project(log, home)
        expect((await verify(log, home)).found).toEqual([])
      }),
      { numRuns: runs },
    )
  })

  test('a projector that dies between two batches, again and again, neither skips a record nor counts one twice', async () => {
    const log = new MemoryLog(3)
    const home = makeHome()
    play(log, many(60))
    for (let round = 0; round < 12; round++) {
      // The fetch that fails ends this round's projector; nothing of the batch that it had begun is written.
      log.failAt = log.fetches + 2 + round
      const projector = projectorOf(log, home)
      projector.start()
      await until(
        () =>
          projector.vitals.state === 'failing' || (projector.vitals.state === 'waiting' && projector.vitals.lag === 0),
        () => JSON.stringify(projector.vitals),
      )
      await projector.stop()
    }
    log.failAt = Number.POSITIVE_INFINITY
    await project(log, home)
    const store = new QueryStore(home, systemClock)
    expect(await store.counts({})).toMatchObject({ delivered: 60, queued: 0 })
    expect(await healthSum(home)).toBe(60)
    await store.close()
    expect((await verify(log, home)).found).toEqual([])
  })

  test('two projectors on one state do no harm to it', async () => {
    const log = new MemoryLog(3)
    const home = makeHome()
    play(log, many(80))
    const both = [projectorOf(log, home), projectorOf(log, home)]
    for (const projector of both) projector.start()
    await Promise.all(both.map(caughtUp))
    play(log, many(80), 'more')
    const store = new QueryStore(home, systemClock)
    await until(
      async () => (await store.counts({})).delivered === 160,
      () => 'all of them',
    )
    for (const projector of both) await projector.stop()
    await store.close()
    expect(await healthSum(home)).toBe(160)
    expect((await verify(log, home)).found).toEqual([])
  })

  test('a live projector and open questions go over to the state that a rebuild published', async () => {
    const log = new MemoryLog(3)
    const home = makeHome()
    play(log, many(30))
    const projector = projectorOf(log, home)
    projector.start()
    await caughtUp(projector)
    const store = new QueryStore(home, systemClock)
    expect((await store.counts({})).delivered).toBe(30)
    const former = await home.current()
    const build = await home.build()
    await buildState(worldOf(log), build, { signal: new AbortController().signal, progress: () => undefined })
    // Arrives after the rebuild has read the log and before the swap: the projector has to bring it in afterwards.
    play(log, many(10), 'late')
    await until(
      async () => (await store.counts({})).delivered === 40,
      () => 'the late ones in the old state',
    )
    await build.publish()
    expect(await home.current()).not.toBe(former)
    play(log, many(10), 'later')
    await until(
      async () => (await store.counts({})).delivered === 50,
      () => 'the later ones in the new state',
    )
    await projector.stop()
    await store.close()
    expect((await verify(log, home)).found).toEqual([])
  })

  test('a state of another log is not folded on, and says what to do', async () => {
    const home = makeHome()
    const log = new MemoryLog(3)
    play(log, many(20))
    await project(log, home)
    const other = new MemoryLog(3)
    play(other, many(2))
    const projector = projectorOf(other, home)
    projector.start()
    await until(
      () => projector.vitals.state === 'failing',
      () => 'the refusal',
    )
    expect(projector.vitals.error).toMatch(/ends at \d+, but the state was folded to \d+/)
  })

  test('verify finds a row that was changed, one that was added and one that is missing', async () => {
    const log = new MemoryLog(3)
    const home = makeHome()
    play(log, many(9))
    await project(log, home)
    const open = await home.open()
    await open.db.updateTable('deliveries').set({ error: 'wrong' }).where('id', '=', 'msg_d1').execute()
    await open.db.deleteFrom('attempts').where('lane', '=', 0).where('off', '=', 0).execute()
    await open.db.insertInto('counts').values({ tenant: 'x', subscription: 'zzz', status: 0, n: 1 }).execute()
    await open.close()
    const { found, differences } = await verify(log, home)
    expect(differences).toBe(3)
    expect(found).toEqual([
      { table: 'deliveries', key: 'msg_d1', columns: [{ column: 'error', live: 'wrong', rebuilt: null }] },
      { table: 'attempts', key: '0 0', missing: 'live' },
      { table: 'counts', key: 'zzz x 0', missing: 'rebuilt' },
    ])
  })

  test('what the log has forgotten leaves the state, and the rest is what a rebuild of the shortened log gives', async () => {
    await fc.assert(
      fc.asyncProperty(stories, fc.integer({ min: 1, max: 9 }), async (all, tenths) => {
        const log = new MemoryLog(2)
        const home = makeHome()
        play(log, all)
        await project(log, home)
        // Deliveries and tiers are kept for a shorter time than what they lead to.
        for (let lane = 0; lane < 2; lane++) {
          const cut = (topic: string, share: number) =>
            log.truncate(topic, lane, Math.floor(log.records(topic, lane).length * share))
          cut(topics.attempts, tenths / 10)
          for (const topic of [topics.deliveries, ...topics.tiers, topics.parked]) cut(topic, 1)
        }
        await project(log, home, { forgetMs: 0 })
        const { found } = await verify(log, home, true)
        expect(found).toEqual([])
      }),
      { numRuns: runs },
    )
  })
}

/** Attempts that the state's health counts. */
async function healthSum(home: StateHome): Promise<number> {
  const { db, close } = await home.read()
  const rows = await db.selectFrom('health').select(['succeeded', 'failed']).execute()
  await close()
  return rows.reduce((sum, { succeeded, failed }) => sum + succeeded + failed, 0)
}
