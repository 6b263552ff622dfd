import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../src/broker/free-ports.ts'
import type { OwnBroker } from '../../src/broker/options.ts'
import type { Clock } from '../../src/ports.ts'
import { ownBroker } from '../support/broker.ts'
import { realClock } from '../support/clock.ts'
import type { Posted } from './endpoint.ts'
import { Log } from './log.ts'
import { createWorld, type Running, until, type World } from './world.ts'

const awayMs = 30_000
const backlog = 120

let broker: OwnBroker
let world: World
let service: Running
let killedMs = 0
let backMs = 0
/** Started while the broker was away. */
let late: Promise<Running>
const lateLog = new Log()
let latePages: unknown
let gaveUp: Promise<unknown>
const produced = new Map<string, 'before' | 'between' | 'after'>()

beforeAll(async () => {
  broker = await ownBroker()
  world = await createWorld({ brokers: broker.brokers })
  await world.subscribe(
    world.subscription('fast', world.endpoint.at('/fast'), { types: ['fast'], ordering: 'key' }),
    world.subscription(
      'slow',
      world.endpoint.at('/slow', () => sleep(120, { status: 200 })),
      { types: ['slow'], ordering: 'none', maxInFlight: 1 },
    ),
  )
  service = await world.up()
})
afterAll(async () => {
  await world?.close()
  await broker?.stop()
})

/** A producer of events that does not give up: what is acknowledged counts. */
async function produceUntilAcknowledged(
  when: 'before' | 'between' | 'after',
  ids: string[],
  type: string,
): Promise<void> {
  for (const id of ids) {
    for (;;) {
      try {
        await world.produce({ id, type, key: `k${id.length}` })
        break
      } catch {
        await sleep(200)
      }
    }
    produced.set(id, when)
  }
}

/** Thirty times as fast, so that a patience of a minute takes two seconds. */
const hasty: Clock = {
  now: () => realClock.now(),
  mono: () => realClock.mono() * 30,
  after: (ms, fn) => realClock.after(ms / 30, fn),
  random: () => realClock.random(),
}

test('a broker that goes away for 30 s under traffic: the service lives, says so once, starts no POST it has no lease for', async () => {
  await produceUntilAcknowledged(
    'before',
    Array.from({ length: 10 }, (_, i) => `fast-${i}`),
    'fast',
  )
  await world.produce(...Array.from({ length: backlog }, (_, i) => ({ id: `slow-${i}`, type: 'slow' })))
  await world.produce({ id: 'bad', type: 'not a type' })
  await until(
    'traffic flows',
    () => world.endpoint.of('/slow').length > 5 && world.endpoint.delivered('/fast').length === 10,
  )
  const linesBefore = service.log.lines.length
  await broker.kill()
  killedMs = Date.now()
  const between = produceUntilAcknowledged('between', ['between-1', 'between-2'], 'fast')
  gaveUp = world.up({ clock: hasty }).catch((error: unknown) => error)
  await sleep(awayMs - 5_000)
  // Late, so that its patience of a minute holds until even a slow broker is back.
  const [latePort = 0] = await freePorts(1)
  late = world.up({ log: lateLog, env: { HOOKTIDE_OBSERVE_PORT: String(latePort) } })
  late.catch(() => undefined)
  await sleep(Math.max(4_000, killedMs + awayMs - Date.now()))
  latePages = await Promise.all(
    ['/healthz', '/readyz'].map(async (path) => {
      const response = await fetch(`http://127.0.0.1:${latePort}${path}`)
      const { reasons } = (await response.json()) as { reasons: string[] }
      return { path, status: response.status, reasons }
    }),
  )
  const pages = await Promise.all(['/healthz', '/readyz', '/metrics'].map((path) => service.page(path)))
  const postsInOutage = [...world.endpoint.posts]
  const outage = service.log.lines.slice(linesBefore).filter(({ level }) => level === 'warn' || level === 'error')
  backMs = Date.now()
  await broker.restart()
  await between

  // Alive, not ready: no restart would help, and what it is asked for it can't do.
  expect(pages.map(({ status }) => status)).toEqual([200, 503, 200])
  expect(service.fatal).toEqual([])
  const leaseMs = world.config.kafka.sessionTimeoutMs - world.config.http.totalTimeoutMs - 1_000
  expect(postsInOutage.filter(({ startMs }) => startMs > killedMs + leaseMs + 1_000)).toEqual([])
  expect(postsInOutage.filter(({ path }) => path === '/slow').length).toBeLessThan(backlog)
  // A line when it begins for each part that notices, not one per try.
  const names = outage.map(({ event }) => event)
  expect([names.length < 60, names]).toEqual([true, names])
  const unavailable = outage.filter(({ event }) => event === 'consumer.unavailable')
  expect(new Set(unavailable.map(({ group }) => group)).size).toBe(unavailable.length)
  expect(unavailable[0]).toMatchObject({
    level: 'warn',
    remedy: expect.stringMatching(/brokers are up.*goes on by itself/),
  })
}, 120_000)

test('a service started while the broker is away waits and says for which brokers; it gives up only after its patience, with what to check', async () => {
  const error = (await gaveUp) as Error & { code?: string; remedy?: string }
  expect(error).toMatchObject({ code: expect.stringMatching(/^broker\.(unavailable|timeout)$/) })
  expect(error.message).toContain(broker.brokers)
  expect(error.remedy).toMatch(/Check that the brokers are up and reachable/)
  expect(lateLog.of('broker.waiting')).toMatchObject([
    { level: 'warn', brokers: broker.brokers, remedy: expect.stringMatching(/Check kafka\.brokers.*up and reachable/) },
  ])
  expect(latePages).toEqual([
    { path: '/healthz', status: 200, reasons: ['waiting for a broker'] },
    { path: '/readyz', status: 503, reasons: ['waiting for a broker'] },
  ])
  const started = await late
  expect(started.log.of('service.started')).toHaveLength(1)
})

test('after it nothing is lost: each event before, between and after is delivered, and once but for what was open or uncommitted when it went', async () => {
  await produceUntilAcknowledged('after', ['after-1', 'after-2'], 'fast')
  const missing = () => {
    const got = new Set(world.endpoint.posts.flatMap(({ body, status }) => (status === 200 ? [body.toString()] : [])))
    const wanted = [...produced.keys(), ...Array.from({ length: backlog }, (_, i) => `slow-${i}`)]
    return wanted.filter((id) => !got.has(id))
  }
  await until('every event is delivered', () => missing().length === 0, {
    withinMs: 60_000,
    seen: () => ({ missing: missing(), service: service.log.trouble.slice(-12), late: lateLog.lines.slice(-12) }),
  })
  const first = new Map<string, Posted>()
  for (const post of world.endpoint.posts) {
    const before = first.get(post.body.toString())
    if (before === undefined) first.set(post.body.toString(), post)
    else {
      // Made, and its settlement not committed, when the broker went.
      expect([
        post.body.toString(),
        before.endMs !== null && before.endMs > killedMs - 2_000 && before.startMs < backMs,
      ]).toEqual([post.body.toString(), true])
      expect(post.id).toBe(before.id)
    }
  }
  const rejected = await world.read(world.topics.rejected)
  expect(rejected.map(({ value }) => value?.toString())).toEqual(['bad'])
  expect(service.log.of('consumer.recovered').length).toBeGreaterThanOrEqual(1)
  expect(service.fatal).toEqual([])
  const { status } = await service.page('/healthz')
  expect(status).toBe(200)
}, 90_000)
