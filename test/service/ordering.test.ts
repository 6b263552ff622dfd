import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Posted } from './endpoint.ts'
import { killAll, run, type ServiceProcess } from './process.ts'
import { createWorld, until, type World } from './world.ts'

let world: World
const keys = ['a', 'b', 'c', 'd', 'e']
const total = 100
const subscriptions = ['none', 'key', 'subscription'] as const

beforeAll(async () => {
  world = await createWorld({ env: { HOOKTIDE_RETRY_CAP: '600ms' } })
  // Every eleventh delivery fails at its first attempts, whatever it is: heads of lines among them.
  const flaky = async (post: Posted) => {
    await sleep(5)
    return { status: number(post) % 11 === 3 && post.attempt <= 2 ? 503 : 200 }
  }
  await world.subscribe(
    ...subscriptions.map((ordering) =>
      world.subscription(ordering, world.endpoint.at(`/${ordering}`, flaky), { ordering, types: ['all'] }),
    ),
  )
})
afterAll(async () => {
  await killAll()
  await world?.close()
})

function number({ body }: Posted): number {
  return Number(body.toString().split(' ')[1])
}

function keyOf({ body }: Posted): string {
  return body.toString().split(' ')[0] as string
}

async function start(): Promise<ServiceProcess> {
  const child = run(['up'], world.env)
  await until('service.started', () => child.log.of('service.started').length > 0, {
    seen: () => child.log.lines.slice(-5),
  })
  return child
}

/**
 * In one line a POST of n + 1 never begins before n has had its 2xx, and no two are open at once. After a crash the last
 * few may come again, in order: what came before is then behind the first success of all that were before it.
 */
function orderProblems(
  line: readonly Posted[],
  order: ReadonlyMap<string, number>,
  crashes: readonly number[],
): string[] {
  const problems: string[] = []
  const doneMs = new Map<number, number>()
  let open: Posted | null = null
  for (const post of line) {
    const place = order.get(post.body.toString()) as number
    for (let before = 0; before < place; before++) {
      const done = doneMs.get(before)
      if (done === undefined || done > post.startMs)
        problems.push(`${post.body} began before ${before} of its line was done`)
    }
    const crashed = open !== null && crashes.some((ms) => ms >= (open as Posted).startMs && ms <= post.startMs)
    if (open !== null && (open.endMs ?? Number.POSITIVE_INFINITY) > post.startMs && !crashed)
      problems.push(`${post.body} began while ${open.body} was open`)
    if (doneMs.has(place) && !crashes.some((ms) => ms >= (doneMs.get(place) as number) - 5 && ms <= post.startMs))
      problems.push(`${post.body} came again without a crash`)
    if (post.status === 200 && !doneMs.has(place)) doneMs.set(place, post.endMs as number)
    open = post
  }
  if (doneMs.size !== order.size) problems.push(`${order.size - doneMs.size} were never delivered`)
  return problems
}

test('with failing heads, order holds per key and per subscription through kill -9 and take-over; unordered ones overtake; blocked lines go on', async () => {
  const crashes: number[] = []
  const workers = [await start()]
  const perKey = new Map<string, string[]>(keys.map((key) => [key, []]))
  const producing = (async () => {
    for (let n = 0; n < total; n += 5) {
      const events = keys.map((key, i) => ({ id: `o${n + i}`, type: 'all', key, body: `${key} ${n + i}` }))
      for (const { key, body } of events) perKey.get(key)?.push(body)
      await world.produce(...events)
      await sleep(60)
    }
  })()
  // Twice, at moments nobody chose: in the midst of traffic, and while lines stand behind their heads.
  for (const least of [60 + Math.floor(Math.random() * 40), 150 + Math.floor(Math.random() * 60)]) {
    await until('traffic flows', () => world.endpoint.posts.length >= least, {
      seen: () => workers.at(-1)?.log.lines.slice(-5),
    })
    const next = start()
    const victim = workers.at(-1) as ServiceProcess
    victim.signal('SIGKILL')
    await victim.ended
    crashes.push(Date.now())
    workers.push(await next)
  }
  await producing
  const missing = () => subscriptions.map((id) => total - new Set(world.endpoint.delivered(`/${id}`)).size)
  await until('everything is delivered', () => missing().every((n) => n === 0), {
    withinMs: 45_000,
    seen: () => ({ missing: missing(), log: workers.at(-1)?.log.trouble.slice(-5) }),
  })
  for (const key of keys) {
    const order = new Map((perKey.get(key) as string[]).map((body, i) => [body, i]))
    const line = world.endpoint.of('/key').filter((post) => keyOf(post) === key)
    expect([key, orderProblems(line, order, crashes)]).toEqual([key, []])
    // The check would notice.
    expect(orderProblems(line.toReversed(), order, crashes)).not.toEqual([])
    expect(
      orderProblems(
        line.filter((post) => order.get(post.body.toString()) !== 0),
        order,
        crashes,
      ),
    ).not.toEqual([])
  }
  // One line over all keys: the order in which the router wrote them, as `deliveries` holds it.
  const written = (await world.read(world.topics.deliveries)).filter(({ key }) => String(key) === 'subscription')
  const bodies = [...new Set(written.map(({ value }) => String(value)))]
  expect(bodies).toHaveLength(total)
  expect(
    orderProblems(world.endpoint.of('/subscription'), new Map(bodies.map((body, i) => [body, i])), crashes),
  ).toEqual([])

  // Unordered: a failed one is overtaken, and nothing but what a crash explains comes twice.
  const free = world.endpoint.of('/none')
  const failed = free.find(({ status }) => status === 503) as Posted
  const passed = free.filter((post) => post.startMs > failed.startMs && post.status === 200 && post.id !== failed.id)
  const recovered = free.find(({ id, status }) => id === failed.id && status === 200) as Posted
  expect(passed.some(({ startMs }) => startMs < recovered.startMs)).toBe(true)
  // The same id and a growing attempt number on every way.
  const byId = Map.groupBy(world.endpoint.posts, ({ id }) => id)
  for (const posts of byId.values()) {
    expect(new Set(posts.map(({ body, path }) => `${path} ${body}`)).size).toBe(1)
    for (const [i, post] of posts.entries())
      if (i > 0) expect(post.attempt - (posts[i - 1] as Posted).attempt).toBeLessThanOrEqual(1)
  }
  // Lines stood behind their heads in Kafka, not in memory only.
  const states = (await world.read(world.topics.laneState)).filter(({ key }) => String(key).startsWith('line:'))
  expect(states.length).toBeGreaterThan(0)
  const last = workers.at(-1) as ServiceProcess
  last.signal('SIGTERM')
  expect(await last.ended).toBe(0)
  const open = new Map<string, boolean>()
  for (const { key, value } of await world.read(world.topics.laneState))
    if (String(key).startsWith('line:')) open.set(String(key), value === null)
  expect([...open].filter(([, isOpen]) => !isOpen)).toEqual([])
}, 120_000)
