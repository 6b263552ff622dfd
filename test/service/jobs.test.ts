import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { decodeDelivery } from '../../src/core/delivery.ts'
import { OriginFilter } from '../../src/core/origin-filter.ts'
import { hooktide } from '../cli/support.ts'
import { killAll, run } from './process.ts'
import { createWorld, until, type World } from './world.ts'

let world: World
let healed = false
const folder = mkdtempSync(join(tmpdir(), 'hooktide-jobs-'))
beforeAll(async () => {
  world = await createWorld({ env: { HOOKTIDE_STATE_ENABLED: 'true', HOOKTIDE_STATE_PATH: folder } })
  await world.subscribe(
    world.subscription('old', world.endpoint.at('/old'), { ordering: 'key' }),
    world.subscription(
      'broken',
      world.endpoint.at('/broken', () => ({ status: healed ? 200 : 400 })),
      { types: ['bad.one'] },
    ),
  )
})
afterAll(async () => {
  await killAll()
  await world?.close()
  rmSync(folder, { recursive: true, force: true })
})

const cli = (...args: string[]) => hooktide(args, { env: world.env })

async function jobOf(id: string) {
  return JSON.parse((await cli('jobs', 'show', id, '--json')).out)
}

/** What lanes don't drop as a repeat, in the order of the log; and events by delivery id. */
async function countedOf(subscription: string) {
  const filters = new Map<number, OriginFilter>()
  const names = new Map<string, string>()
  const counted: { event: string; stream: string }[] = []
  for (const record of await world.read(world.topics.deliveries)) {
    const delivery = decodeDelivery(record)
    if (!delivery.ok) throw new Error(delivery.reason)
    const { origin, subscriptionId, eventId, id } = delivery.value
    const filter = filters.get(record.partition) ?? new OriginFilter()
    filters.set(record.partition, filter)
    if (!filter.accept(record.offset, origin, subscriptionId) || subscriptionId !== subscription) continue
    names.set(id, eventId)
    counted.push({ event: eventId, stream: origin.stream })
  }
  return { counted, names }
}

let produced = 0
const batch = (n: number) => Array.from({ length: n }, () => ({ id: `e${produced}`, key: `k${produced++ % 5}` }))

test('a new subscription gets past events and then live ones: kill −9 in the middle, no gap, no double, in order', async () => {
  await world.produce(...batch(400))
  const first = run(['up'], world.env)
  await until('old ones are delivered', () => world.endpoint.delivered('/old').length >= 400)
  const added = await cli(
    ...[
      'subscriptions',
      'add',
      '--id',
      'new',
      '--url',
      world.endpoint.at('/new'),
      '--secret',
      'env:HOOKTIDE_SECRET_TEST',
    ],
    ...['--ordering', 'key', '--types', 'order.paid', '--backfill', 'all'],
  )
  expect([added.code, added.err]).toEqual([0, expect.stringMatching(/^Past events come first, by job (\S+):/)])
  const id = / job (\S+):/.exec(added.err)?.[1] as string
  await until('it has begun', () => world.endpoint.delivered('/new').length > 20)
  await world.produce(...batch(50))
  first.signal('SIGKILL')
  await first.ended
  const killedAt = world.endpoint.delivered('/new').length
  await world.produce(...batch(50))
  const second = await world.up()
  await world.produce(...batch(50))
  await until('the job is over', async () => (await jobOf(id)).state === 'done')
  await world.produce(...batch(20))
  const ids = () => new Set(world.endpoint.delivered('/new'))
  await until('everything came', () => ids().size === produced, { seen: () => ids().size })
  const job = await jobOf(id)
  const { counted, names } = await countedOf('new')
  expect(job.written).toBeGreaterThanOrEqual(400)
  expect(counted.some(({ stream }) => stream.startsWith(`job:${id}:`))).toBe(true)
  expect(counted.some(({ stream }) => !stream.startsWith('job:'))).toBe(true)
  expect(counted.map(({ event }) => event).sort()).toEqual(Array.from({ length: produced }, (_, i) => `e${i}`).sort())
  // What kill −9 found done and not committed comes again; nothing else does.
  const after = world.endpoint.delivered('/new').slice(killedAt)
  expect(after.filter((delivery, i) => after.indexOf(delivery) !== i)).toEqual([])
  for (let k = 0; k < 5; k++) {
    const own = [...ids()].map((delivery) => Number(names.get(delivery)?.slice(1))).filter((n) => n % 5 === k)
    expect(own).toEqual([...own].sort((a, b) => a - b))
  }
  await second.stop()
}, 90_000)

test('a replay sends the same ids once more; a second one is refused meanwhile; the state is what a rebuild gives', async () => {
  const projector = await world.up({ roles: ['router', 'deliverer', 'projector'] })
  const before = world.endpoint.delivered('/old').length
  const dry = await cli('replay', '--subscription', 'old', '--dry-run', '--json')
  expect(JSON.parse(dry.out)).toMatchObject({ events: produced, wanted: produced, complete: true })
  const missing = await cli('replay', '--subscription', 'old', '--only-missing', '--dry-run', '--json')
  expect(JSON.parse(missing.out)).toMatchObject({ events: produced, wanted: 0, reached: produced, complete: true })
  const shadow = await cli(...['replay', '--subscription', 'old', '--shadow', '--types', 'nothing', '--json'])
  expect(JSON.parse(shadow.out).shadow).toEqual({ wanted: 0, added: 0, removed: produced })
  const slow = await cli('replay', '--subscription', 'old', '--rate', '5', '--detach', '--json')
  const refused = await cli('replay', '--subscription', 'old')
  expect([refused.code, refused.err]).toEqual([
    1,
    expect.stringContaining(`job ${JSON.parse(slow.out).id} does this already`),
  ])
  const cancelled = await cli('jobs', 'cancel', JSON.parse(slow.out).id)
  expect(cancelled.code).toBe(0)
  await until('it is cancelled', async () => (await jobOf(JSON.parse(slow.out).id)).state === 'cancelled', {
    withinMs: 2_000,
  })
  const bySlow = (await jobOf(JSON.parse(slow.out).id)).written
  const whole = await cli('replay', '--subscription', 'old', '--json')
  expect([whole.code, JSON.parse(whole.out)]).toEqual([
    0,
    expect.objectContaining({ state: 'done', written: produced }),
  ])
  await until('all came again', () => world.endpoint.delivered('/old').length === before + bySlow + produced)
  expect(new Set(world.endpoint.delivered('/old')).size).toBe(produced)
  await until('the projector has seen it', async () => {
    const result = await cli('state', 'verify', '--json')
    return result.code === 0 && JSON.parse(result.out).differences === 0
  })
  await projector.stop()
}, 90_000)

test('dead letters are redriven as a job, under their ids, each once', async () => {
  const service = await world.up({ roles: ['router', 'deliverer', 'projector'] })
  await world.produce(...Array.from({ length: 30 }, (_, i) => ({ id: `bad${i}`, type: 'bad.one' })))
  await until('all are dead', async () => (await world.read(world.topics.dead)).length === 30)
  const ids = new Set(world.endpoint.of('/broken').map(({ id }) => id))
  const count = async (...filters: string[]) => {
    const dry = await cli('jobs', 'redrive', ...filters, '--dry-run', '--json')
    return JSON.parse(dry.out).redriven
  }
  expect(await count('--subscription', 'broken', '--last-error', '400')).toBe(30)
  expect(await count('--last-error', '503')).toBe(0)
  expect(await count('--tenant', 'nobody')).toBe(0)
  // What died is missing; a replay of what is missing sends that and no more.
  const missing = await cli('replay', '--subscription', 'broken', '--only-missing', '--dry-run', '--json')
  expect(JSON.parse(missing.out)).toMatchObject({ wanted: 30, reached: 0 })
  expect((await cli('jobs', 'list', '--all', '--json')).out).not.toContain('redrive')
  healed = true
  const redriven = await cli('jobs', 'redrive', '--subscription', 'broken', '--last-error', '400', '--json')
  expect([redriven.code, JSON.parse(redriven.out)]).toEqual([
    0,
    expect.objectContaining({ state: 'done', written: 30 }),
  ])
  await until('all are delivered', () => world.endpoint.delivered('/broken').length === 30)
  expect(new Set(world.endpoint.delivered('/broken'))).toEqual(ids)
  expect((await cli('jobs', 'list', '--all')).out).toContain('redrive')
  const after = await cli('replay', '--subscription', 'broken', '--only-missing', '--json')
  expect([after.code, JSON.parse(after.out)]).toEqual([0, expect.objectContaining({ state: 'done', written: 0 })])
  await until('the state is what a rebuild gives', async () => {
    const result = await cli('state', 'verify', '--json')
    return result.code === 0 && JSON.parse(result.out).differences === 0
  })
  await service.stop()
}, 60_000)
