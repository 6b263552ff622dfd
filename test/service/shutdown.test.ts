import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gate } from './endpoint.ts'
import { killAll, run, type ServiceProcess } from './process.ts'
import { createWorld, until, type World } from './world.ts'

let world: World
/** Processes that one test starts and the next goes on with: each start costs seconds. */
let leaving: ServiceProcess
let staying: ServiceProcess
beforeAll(async () => {
  world = await createWorld()
})
afterAll(async () => {
  await killAll()
  await world?.close()
})

async function start(): Promise<ServiceProcess> {
  const child = run(['up'], world.env)
  await until('service.started', () => child.log.of('service.started').length > 0, {
    seen: () => child.log.lines.slice(-5),
  })
  return child
}

function repeats(path: string): string[] {
  const ids = world.endpoint.of(path).map(({ id }) => id)
  return ids.filter((id, i) => ids.indexOf(id) !== i)
}

test('SIGTERM: open POSTs are waited for and committed, exit 0; the next process delivers the rest, and nothing twice', async () => {
  const slow = world.endpoint.at('/slow', async () => {
    await sleep(1_000)
    return { status: 200 }
  })
  await world.subscribe(world.subscription('slow', slow, { maxInFlight: 8 }))
  const first = await start()
  const ids = Array.from({ length: 24 }, (_, i) => `d${i}`)
  await world.produce(...ids.map((id) => ({ id })))
  await until('POSTs are open', () => world.endpoint.open('/slow') === 8)
  first.signal('SIGTERM')
  expect(await first.ended).toBe(0)
  const posts = world.endpoint.of('/slow')
  expect(posts.length).toBeGreaterThanOrEqual(8)
  expect(posts.length).toBeLessThan(ids.length)
  expect(posts.map(({ status }) => status)).toEqual(posts.map(() => 200))
  expect(first.log.of('service.stopping')).toMatchObject([{ why: 'SIGTERM' }])
  expect(first.log.of('lanes.drained', (line) => line.final === true)).toMatchObject([{ left: 0 }])
  expect(first.log.of('service.stopped')).toHaveLength(1)

  ;[leaving, staying] = await Promise.all([start(), start()])
  await until('all are delivered', () => new Set(world.endpoint.delivered('/slow')).size === ids.length)
  expect(repeats('/slow')).toEqual([])
}, 60_000)

test('two processes share the lanes; one leaves under traffic: all is delivered, nothing twice', async () => {
  const subscriptions = ['a', 'b', 'c', 'd'].map((id) =>
    world.subscription(
      id,
      world.endpoint.at(`/${id}`, () => sleep(30, { status: 200 })),
      {
        types: ['shared'],
        ordering: id < 'c' ? 'key' : 'none',
      },
    ),
  )
  await world.subscribe(...subscriptions)
  const lanesOf = (child: ServiceProcess) => String(child.log.of('lanes.assigned').at(-1)?.lanes ?? '')
  await until('each has one of the two lanes', () => lanesOf(leaving).length === 1 && lanesOf(staying).length === 1, {
    seen: () => [lanesOf(leaving), lanesOf(staying)],
  })
  const total = 120
  let left: Promise<number | string> | null = null
  for (let i = 0; i < total; i += 4) {
    await world.produce(...[0, 1, 2, 3].map((j) => ({ id: `s${i + j}`, type: 'shared', key: `k${(i + j) % 5}` })))
    await sleep(40)
    if (i === 40) {
      leaving.signal('SIGTERM')
      left = leaving.ended
    }
  }
  expect(await left).toBe(0)
  for (const { id } of subscriptions) {
    await until(`all of ${id} are delivered`, () => new Set(world.endpoint.delivered(`/${id}`)).size === total)
    // A busy machine is no excuse: what came twice is shown with what both processes logged.
    const twice = repeats(`/${id}`)
    const posts = world.endpoint.of(`/${id}`).filter((post) => twice.includes(post.id))
    const story = twice.length === 0 ? [] : [posts.slice(0, 6), leaving.log.trouble, staying.log.trouble]
    expect([id, story]).toEqual([id, []])
  }
  expect(lanesOf(staying)).toBe('0,1')
  expect(leaving.log.trouble.filter(({ level }) => level !== 'warn')).toEqual([])
}, 60_000)

test('a second signal ends it at once: what was open comes again with the same id and attempt number', async () => {
  const child = staying
  const held = gate<{ status: number }>()
  const url = world.endpoint.at('/held', (_post, nth) => (nth <= 3 ? held.opened : { status: 200 }))
  await world.subscribe(world.subscription('held', url, { types: ['held'] }))
  await world.produce({ id: 'h0', type: 'held' }, { id: 'h1', type: 'held' }, { id: 'h2', type: 'held' })
  await until('three are open', () => world.endpoint.open('/held') === 3)
  child.signal('SIGTERM')
  await until('it drains', () => child.log.of('service.stopping').length === 1)
  const before = performance.now()
  child.signal('SIGTERM')
  expect(await child.ended).toBe(0)
  // The POSTs had seconds left; the drain too.
  expect(performance.now() - before).toBeLessThan(2_500)
  expect(child.log.of('service.aborting')).toMatchObject([
    { signal: 'SIGTERM', what: expect.stringMatching(/made again/) },
  ])
  const cut = world.endpoint.of('/held')
  expect(cut.map(({ status, endMs }) => [status, endMs !== null])).toEqual(cut.map(() => [null, true]))
  expect(await world.attempts('held')).toEqual([])

  const next = await start()
  await until('all three come again', () => world.endpoint.delivered('/held').length === 3)
  held.open({ status: 200 })
  const again = world.endpoint.of('/held').slice(3)
  expect(new Set(again.map(({ id }) => id))).toEqual(new Set(cut.map(({ id }) => id)))
  expect([...cut, ...again].map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1, 1])
  next.signal('SIGINT')
  expect(await next.ended).toBe(0)
  expect((await world.attempts('held')).map(({ attempt, settlement }) => [attempt, settlement])).toEqual(
    [1, 1, 1].map((n) => [n, 'done']),
  )
}, 60_000)
