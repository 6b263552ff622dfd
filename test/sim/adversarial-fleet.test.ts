import { describe, expect, test } from 'vitest'
import { changes, delivers, type Endpoint, failsFirst, hangs, slow } from './endpoints.ts'
import type { PostEntry } from './receiver.ts'
import { Stage } from './stage.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

/** Events of each subscription in turn, about one each `everyMs`, until `on` says no more. Returns how many. */
async function flow(stage: Stage, ids: readonly string[], everyMs: number, on: () => boolean): Promise<number> {
  let n = 0
  for (; on(); n++) {
    await stage.produce(ids[n % ids.length] as string, `k${Math.floor(n / ids.length) % 4}`)
    await stage.advance(everyMs)
  }
  return n
}

/** POSTs of an attempt that had been made before. */
function repeats(posts: readonly PostEntry[]): PostEntry[] {
  const seen = new Set<string>()
  return posts.filter(({ deliveryId, attempt }) => {
    const known = seen.has(`${deliveryId} ${attempt}`)
    seen.add(`${deliveryId} ${attempt}`)
    return known
  })
}

describe('a rolling deploy of three processes while events flow (9)', () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const rolling = async (endpoint: Endpoint) => {
    const stage = new Stage({}, 6, 3)
    await stage.start(Object.fromEntries(ids.map((id) => [id, { endpoint }])))
    const { world } = stage
    let left = 0
    const restarts = (async () => {
      for (const worker of world.workers) {
        left = stage.nowMs
        await world.restart(worker, 200)
        await new Promise<void>((resolve) => world.clock.after(6_000, resolve))
      }
    })()
    let over = false
    void restarts.then(() => {
      over = true
    })
    await flow(stage, ids, 40, () => !over)
    return { stage, left }
  }

  test('endpoints that take 0.2 to 1.5 s: nothing is sent twice, order is kept, and every lane goes on within 6 s', async () => {
    const { stage } = await rolling(slow(200, 1_500))
    await stage.drained()
    expect(repeats(stage.world.receiver.posts)).toEqual([])
    for (const id of ids) {
      for (const key of ['k0', 'k1', 'k2', 'k3']) {
        const sequences = stage.sequences(id, key)
        expect(sequences.length).toBeGreaterThan(0)
        expect(sequences).toEqual(upTo(sequences.length))
      }
      const starts = stage.posts(id).map(({ startMs }) => startMs)
      const pauses = starts.slice(1).map((startMs, i) => startMs - (starts[i] as number))
      expect(Math.max(...pauses)).toBeLessThan(6_000)
    }
  }, 60_000)

  test('an endpoint that never answers: what was open is all that is sent twice, and nobody waits longer than the drain', async () => {
    const stage = new Stage({ stopDrainMs: 1_000, drainMs: 1_000 }, 6, 3, { timeoutMs: 20_000 })
    const { world } = stage
    const backMs = world.clock.now() + 30_000
    await stage.start({
      stuck: { endpoint: changes(hangs(), backMs, delivers()), ordering: 'none' },
      quick: { endpoint: delivers(), ordering: 'none' },
    })
    await stage.produce('stuck', null, 5)
    await stage.advance(1_000)
    const open = stage.posts('stuck').map(({ deliveryId }) => deliveryId)
    expect(open.length).toBeGreaterThan(0)
    for (const worker of world.workers) {
      const stoppedMs = stage.nowMs
      await world.clock.drive(world.restart(worker, 200))
      expect(stage.nowMs - stoppedMs).toBeLessThan(2_000)
      await stage.running()
      await stage.produce('quick', null, 3)
    }
    await stage.drained()
    for (const { deliveryId } of repeats(world.receiver.posts)) expect(open).toContain(deliveryId)
    expect(stage.accepted('quick')).toHaveLength(9)
    expect(new Set(stage.accepted('stuck').map(({ deliveryId }) => deliveryId)).size).toBe(5)
  }, 60_000)
})

test('members that come and go every 3 s for 5 minutes: nothing is lost or out of order, no offset goes back, no lane is idle at the end (10)', async () => {
  const ids = ['a', 'b', 'c', 'd']
  const stage = new Stage({}, 6, 3)
  await stage.start(Object.fromEntries(ids.map((id) => [id, { endpoint: slow(5, 300) }])))
  const { world } = stage
  const fromMs = stage.nowMs
  let turn = 0
  const storm = () => {
    if (stage.nowMs - fromMs > 300_000) return
    const worker = world.workers[turn++ % world.workers.length]
    if (worker !== undefined) void world.restart(worker, 1_000)
    world.clock.after(3_000, storm)
  }
  world.clock.after(3_000, storm)
  const produced = await flow(stage, ids, 300, () => stage.nowMs - fromMs < 300_000)
  await stage.drained()
  expect(turn).toBeGreaterThan(90)
  for (const id of ids) {
    for (const key of ['k0', 'k1', 'k2', 'k3']) {
      const sequences = [...new Set(stage.sequences(id, key))]
      expect(sequences).toEqual(upTo(sequences.length))
    }
  }
  expect(new Set(ids.flatMap((id) => stage.accepted(id)).map(({ deliveryId }) => deliveryId)).size).toBe(produced)
  const highest = new Map<string, number>()
  for (const { topic, partition, offset } of world.broker.group('deliverers').commits) {
    const at = `${topic}/${partition}`
    expect(offset ?? 0, at).toBeGreaterThanOrEqual(highest.get(at) ?? 0)
    expect(offset ?? 0).toBeLessThanOrEqual(world.broker.log(topic, partition).end)
    highest.set(at, offset ?? 0)
  }
  await stage.running()
}, 120_000)

describe('a process whose clock is 90 s off hands its lanes over (24)', () => {
  test.each([90_000, -90_000])(
    '%i ms: no retry before its tier is ripe by the broker, and early by no more than that clock is off',
    async (skewMs) => {
      const policy = { maxAttempts: 5, baseMs: 3_000, factor: 1, capMs: 3_000, retryAfterCapMs: 60_000 }
      const ids = ['a', 'b', 'c', 'd']
      const stage = await new Stage({ policy }).start(
        Object.fromEntries(ids.map((id) => [id, { endpoint: failsFirst(1), ordering: 'none' as const }])),
      )
      const { broker } = stage.world
      broker.process('w0').jump(skewMs)
      for (const id of ids) await stage.produce(id, null, 5)
      expect(await stage.until(() => stage.world.receiver.posts.length >= 20)).toBe(true)
      await stage.advance(500)
      broker.crash('w0')
      await stage.drained()
      const tiers = broker
        .topics()
        .filter((topic) => topic.startsWith('retry-'))
        .flatMap((topic) => broker.committed(topic))
      let moved = 0
      for (const id of ids) {
        for (const post of stage.posts(id).filter(({ attempt }) => attempt === 2)) {
          const waits = tiers.filter(({ record }) => record?.headers['ht-id']?.toString() === post.deliveryId)
          const ripeMs = Math.max(...waits.map(({ appendedMonoMs }) => appendedMonoMs)) + 1_000
          expect(post.startMs).toBeGreaterThanOrEqual(ripeMs)
          const dueMs = Number(waits.at(-1)?.record?.headers['ht-due']?.toString())
          expect(post.startWallMs).toBeGreaterThanOrEqual(dueMs - Math.abs(skewMs))
          const first = stage
            .posts(id)
            .find(({ deliveryId, attempt }) => deliveryId === post.deliveryId && attempt === 1)
          if (first?.process === 'w0' && (post.process !== 'w0' || post.incarnation > 1)) moved++
        }
        expect(new Set(stage.sequences(id, null))).toEqual(new Set(upTo(5)))
      }
      expect(moved).toBeGreaterThan(0)
    },
  )
})

test('a process that stands still for 20 s: nothing starts after that before it is a member again, and one rebalance takes it back (26)', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const stage = await new Stage().start(Object.fromEntries(ids.map((id) => [id, { endpoint: slow(100, 400) }])))
  const { world } = stage
  for (const id of ids) for (const key of upTo(6)) await stage.produce(id, `k${key}`, 4)
  await stage.advance(300)
  world.broker.stall('w0', 20_000)
  const wakesMs = stage.nowMs + 20_000
  await stage.advance(20_000)
  for (const id of ids) await stage.produce(id, 'late', 2)
  await stage.drained()
  await stage.advance(30_000)
  const assigned = stage.log.filter(
    ({ atMs, worker, name, fields }) =>
      atMs >= wakesMs && worker === 'w0' && name === 'lanes.assigned' && (fields as { gained: number }).gained > 0,
  )
  expect(assigned).toHaveLength(1)
  const early = world.receiver.posts.filter(
    ({ process, startMs }) => process === 'w0' && startMs >= wakesMs && startMs < (assigned[0]?.atMs as number),
  )
  expect(early).toEqual([])
  for (const id of ids) {
    for (const key of upTo(6)) expect([...new Set(stage.sequences(id, `k${key}`))]).toEqual(upTo(4))
  }
})

describe('a process dies between the records of a move and the end of its transaction (4)', () => {
  test.each(upTo(24))('at its call %i: one copy of each move, and the retry comes in its time', async (nth) => {
    const stage = await new Stage({}, 1, 1).start({ a: { endpoint: failsFirst(2) } })
    const { broker } = stage.world
    await stage.produce('a', 'k', 3)
    expect(await stage.until(() => stage.posts('a').length === 1)).toBe(true)
    broker.dice.script('crash', 'w0', nth + 1)
    await stage.drained()
    expect(stage.sequences('a', 'k').filter((n, i, all) => all.indexOf(n) === i)).toEqual([0, 1, 2])
    const copies = new Map<string, number>()
    for (const topic of ['retry-1s', 'retry-4s']) {
      for (const { record } of broker.committed(topic)) {
        const move = `${topic} ${record?.headers['ht-id']} ${record?.headers['ht-attempts']}`
        copies.set(move, (copies.get(move) ?? 0) + 1)
      }
    }
    expect([...copies].filter(([, n]) => n > 1)).toEqual([])
    const third = stage.posts('a').filter(({ attempt }) => attempt === 3)
    // The session of the dead and its transaction have to end first: 6 s and 10 s.
    for (const { startMs } of third.slice(0, 1)) expect(startMs).toBeLessThan(40_000)
    expect(broker.faultLog.some(({ kind }) => kind === 'crash')).toBe(true)
  })
})

test('the events are read from offset 0 again by a new owner while the former one still has some to write: what had been delivered comes once more under its id, and no third time (23)', async () => {
  const stage = await new Stage({}, 4, 2).start({ a: { endpoint: delivers(), ordering: 'none' } })
  const { world } = stage
  await stage.produce('a', null, 30)
  await stage.drained()
  const first = stage.accepted('a').map(({ deliveryId }) => deliveryId)
  expect(new Set(first).size).toBe(30)
  const owner = world.workers.find(({ pipeline }) =>
    [...(pipeline?.router?.streams ?? [])].some(({ at }) => at.partition === 0),
  )
  expect(owner).toBeDefined()
  // It has events to write when it is stopped, and finds another generation in its place when it wakes up.
  await stage.produce('a', null, 10)
  world.broker.stall(owner?.id ?? '', 12_000)
  world.broker.group('routers').apply([{ topic: 'events', partition: 0, offset: 0, metadata: '' }])
  expect(
    await stage.until(() =>
      stage.log.some(
        ({ name, atMs, fields }) =>
          name === 'router.stream_started' && atMs > 1_000 && (fields as { offset: number }).offset === 0,
      ),
    ),
  ).toBe(true)
  await stage.advance(20_000)
  await stage.drained()
  const counts = new Map<string, number>()
  for (const { deliveryId } of stage.accepted('a')) counts.set(deliveryId, (counts.get(deliveryId) ?? 0) + 1)
  expect(counts.size).toBe(40)
  // Of the others some were open when their owner was stopped: those may come once more for that.
  for (const id of first) expect(counts.get(id)).toBe(2)
})
