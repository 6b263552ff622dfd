import { afterAll, beforeAll, expect, test } from 'vitest'
import { killAll, run } from './process.ts'
import { createWorld, until, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await createWorld()
})
afterAll(async () => {
  await killAll()
  await world?.close()
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('two workers divide the lanes; one that is killed is replaced and loses nothing; one SIGTERM ends all, exit 0', async () => {
  const subscription = world.subscription('shared', world.endpoint.at('/shared'), { ordering: 'key' })
  await world.subscribe(subscription)
  const parent = run(['up', '--workers', '2'], world.env)
  const { log } = parent
  const pids = () => log.of('worker.started').map(({ pid }) => pid as number)
  await until('both own lanes', () => new Set(log.of('lanes.assigned').map(({ worker }) => worker)).size === 2, {
    seen: () => log.lines.slice(-5),
  })
  const produce = (from: number) =>
    world.produce(
      ...Array.from({ length: 30 }, (_, i) => ({ id: `e${from + i}`, type: 'order.created', key: `k${i % 7}` })),
    )
  await produce(0)
  await until('thirty are delivered', () => new Set(world.endpoint.delivered('/shared')).size === 30)

  const [killed] = pids() as [number]
  process.kill(killed, 'SIGKILL')
  await produce(30)
  await until('it is replaced', () => pids().length === 3)
  expect(log.of('worker.ended')).toMatchObject([{ pid: killed, signal: 'SIGKILL', againInMs: 1_000 }])
  await until('all are delivered', () => new Set(world.endpoint.delivered('/shared')).size === 60)
  await until('the new one has joined', () => log.of('service.started').length === 3)

  parent.signal('SIGTERM')
  expect(await parent.ended).toBe(0)
  expect(log.of('worker.stopped').map(({ code }) => code)).toEqual([0, 0])
  expect(pids().map(isAlive)).toEqual([false, false, false])
}, 90_000)

test('when the parent is killed its workers end too, in peace', async () => {
  const parent = run(['up', '--workers', '2'], world.env)
  const { log } = parent
  await until('both have started', () => log.of('service.started').length === 2, { seen: () => log.lines.slice(-5) })
  const pids = log.of('worker.started').map(({ pid }) => pid as number)
  parent.signal('SIGKILL')
  await until('no worker is left', () => !pids.some(isAlive))
}, 60_000)

test('what keeps one from starting ends all, with its message and exit code', async () => {
  const parent = run(['up', '--workers', '2'], { ...world.env, HOOKTIDE_TOPICS_PREFIX: 'nowhere.' })
  expect(await parent.ended).toBe(1)
  expect(parent.log.of('worker.not_started').length).toBeGreaterThan(0)
}, 60_000)
