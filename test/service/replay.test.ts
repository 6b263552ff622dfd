import { afterAll, beforeAll, expect, test } from 'vitest'
import { library } from '../../src/kafka/load.ts'
import { killAll, run } from './process.ts'
import { createWorld, type Running, until, type World } from './world.ts'

let world: World
let deliverer: Running
const total = 40
beforeAll(async () => {
  // The router commits only when it stops in order: after kill -9 everything is read again.
  world = await createWorld({ env: { HOOKTIDE_ROUTER_COMMIT_EVERY: '60s' } })
  await world.subscribe(
    world.subscription('plain', world.endpoint.at('/plain'), { ordering: 'key' }),
    world.subscription(
      'flaky',
      world.endpoint.at('/flaky', (_post, nth) => ({ status: nth % 3 === 0 ? 503 : 200 })),
    ),
  )
  deliverer = await world.up({ roles: ['deliverer'] })
})
afterAll(async () => {
  await killAll()
  await world?.close()
})

function topicPartitions() {
  const topic = world.config.topics.events[0] as string
  return Array.from({ length: world.eventPartitions }, (_, partition) => ({ topic, partition }))
}

/** Delivery id → how often it was answered with 2xx. */
function counts(path: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const id of world.endpoint.delivered(path)) found.set(id, (found.get(id) ?? 0) + 1)
  return found
}

async function counted(metric: string): Promise<number> {
  const { text } = await deliverer.page('/metrics')
  return Number(new RegExp(`^hooktide_${metric} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

/** Both endpoints have each delivery exactly `times` times, and everything the routers wrote has been seen. */
async function settled(times: number): Promise<void> {
  const exact = (path: string) => {
    const all = [...counts(path).values()]
    return all.length === total && all.every((n) => n === times)
  }
  await until(`each delivery came ${times} times`, () => exact('/plain') && exact('/flaky'), {
    seen: () => ({
      plain: [...counts('/plain').values()],
      flaky: [...counts('/flaky').values()],
      log: deliverer.log.trouble.slice(-5),
    }),
  })
}

async function resetToStart(): Promise<void> {
  const groupId = world.settings().groups.router
  const admin = new library.kafkajs.Kafka({ brokers: [...world.config.kafka.brokers], logLevel: 0 }).admin()
  await admin.connect()
  try {
    const topic = world.config.topics.events[0] as string
    const partitions = topicPartitions().map(({ partition }) => ({ partition, offset: '0' }))
    // Refused until the group has noticed that its last member left.
    await until('the group takes the offsets', () =>
      admin.setOffsets({ groupId, topic, partitions }).then(
        () => true,
        () => false,
      ),
    )
  } finally {
    await admin.disconnect()
  }
}

test('a router that is killed before it committed writes everything again: the lanes drop and count each repeat, and nothing is delivered twice', async () => {
  const first = run(['up', '--roles', 'router'], world.env)
  await world.produce(...Array.from({ length: total }, (_, i) => ({ id: `e${i}`, key: `k${i % 4}` })))
  await settled(1)
  first.signal('SIGKILL')
  expect(await first.ended).toBe('SIGKILL')
  const committed = await world.kafka.offsets.committed(world.settings().groups.router, topicPartitions())
  expect(committed.map(({ offset }) => offset)).toEqual(committed.map(() => 0))
  expect(committed.every(({ metadata }) => metadata.startsWith('hr1:'))).toBe(true)
  expect(await counted('repeats_dropped_total')).toBe(0)

  const second = await world.up({ roles: ['router'] })
  await until('every repeat is dropped', async () => (await counted('repeats_dropped_total')) === 2 * total, {
    seen: () => ({ router: second.log.lines.slice(-5) }),
  })
  expect(second.log.of('router.stream_started')).toEqual([])
  await settled(1)
  expect(await world.read(world.topics.deliveries)).toHaveLength(4 * total)
  await second.stop()
}, 60_000)

test('offsets that were reset to the start: a new generation, logged; every delivery comes once more, with the same id, and nothing is taken for a repeat', async () => {
  const before = await counted('repeats_dropped_total')
  const ids = { plain: [...counts('/plain').keys()].sort(), flaky: [...counts('/flaky').keys()].sort() }
  await resetToStart()
  const third = await world.up({ roles: ['router'] })
  await settled(2)
  expect([...counts('/plain').keys()].sort()).toEqual(ids.plain)
  expect([...counts('/flaky').keys()].sort()).toEqual(ids.flaky)
  expect(await counted('repeats_dropped_total')).toBe(before)
  const started = third.log.of('router.stream_started')
  expect(started).toHaveLength(world.eventPartitions)
  expect(new Set(started.map(({ why, offset, level }) => `${why} ${offset} ${level}`))).toEqual(
    new Set(['reset 0 warn']),
  )
  // First attempts again: the attempt numbers of the first round are its own.
  const again = world.endpoint.of('/plain').slice(total)
  expect(again.map(({ attempt }) => attempt)).toEqual(again.map(() => 1))
  await third.stop()

  const fourth = await world.up({ roles: ['router'] })
  await world.produce({ id: 'last' })
  await until('it goes on behind', () => world.endpoint.delivered('/plain').length === 2 * total + 1)
  expect(fourth.log.of('router.stream_started')).toEqual([])
  expect([...counts('/plain').values()].filter((n) => n > 2)).toEqual([])
}, 60_000)
