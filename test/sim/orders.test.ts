import { describe, expect, test } from 'vitest'
import { controlKey } from '../../src/core/control.ts'
import { laneOf } from '../../src/core/partition.ts'
import { type Answer, breaks, changes, delivers, type Endpoint, fails, failsFirst } from './endpoints.ts'
import type { PostEntry } from './receiver.ts'
import { Stage } from './stage.ts'
import { spanOf, type World } from './world.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

test('every instance applies an order within a second of its append', async () => {
  const stage = await new Stage().start({ a: { endpoint: delivers() } })
  const orders = [
    { kind: 'tier', target: 'retry-1s', order: 'pause' },
    { kind: 'subscription', target: 'a', order: 'pause' },
    { kind: 'delivery', target: 'd', order: 'cancel' },
    { kind: 'line', target: 'a k x', order: 'cancel' },
  ] as const
  for (const order of orders) {
    const givenMs = stage.nowMs
    await stage.order(order)
    const target = controlKey(order)
    await stage.until(() => stage.applied.filter((a) => a.target === target).length === 2, 5_000)
    const found = stage.applied.filter((a) => a.target === target)
    expect(found.map(({ worker }) => worker).sort(), target).toEqual(['w0', 'w1'])
    for (const { atMs } of found) expect(atMs - givenMs).toBeLessThan(1_000)
  }
})

describe('tiers', () => {
  /** Whatever the first attempt fails of comes to retry-1s first. */
  const scheduled = async (stage: Stage, keys: number) => {
    for (const key of upTo(keys)) await stage.produce('a', `k${key}`, 1)
    expect(await stage.until(() => stage.posts('a').length === keys)).toBe(true)
  }
  const bySecond = { policy: { maxAttempts: 8, baseMs: 1_300, factor: 1, capMs: 1_300, retryAfterCapMs: 10_000 } }

  test('paused for 60 s: nothing is promoted, due times stay, then all goes, in order and not early', async () => {
    const stage = await new Stage(bySecond).start({ a: { endpoint: failsFirst(1) } })
    await stage.order({ kind: 'tier', target: 'retry-1s', order: 'pause' })
    await stage.advance(1_000)
    await scheduled(stage, 10)
    for (const key of upTo(10)) await stage.produce('a', `k${key}`, 3)
    await stage.advance(20_000)
    await stage.restartAll()
    await stage.advance(40_000)
    expect(stage.posts('a')).toHaveLength(10)
    const dueMs = new Map(stage.attempts('a').map(({ deliveryId, dueMs }) => [deliveryId, dueMs as number]))
    const resumedMs = stage.nowMs
    await stage.order({ kind: 'tier', target: 'retry-1s', order: 'resume' })
    await stage.drained()
    for (const key of upTo(10)) expect(stage.sequences('a', `k${key}`)).toEqual([0, 1, 2, 3])
    const second = stage.posts('a').filter(({ attempt, sequence }) => attempt === 2 && sequence === 0)
    expect(second).toHaveLength(10)
    for (const { startMs, startWallMs, deliveryId } of second) {
      expect(startWallMs).toBeGreaterThanOrEqual(dueMs.get(deliveryId) as number)
      expect(startMs).toBeGreaterThan(resumedMs)
      expect(startMs - resumedMs).toBeLessThan(1_000)
    }
    for (const { attempt, deliveryId, dueMs: due } of stage.attempts('a'))
      if (attempt === 1 && dueMs.has(deliveryId)) expect(due).toBe(dueMs.get(deliveryId))
  })

  test('a pause with an end is over within a second of it, without another order', async () => {
    const stage = await new Stage(bySecond).start({ a: { endpoint: failsFirst(1) } })
    const untilMs = stage.world.clock.now() + 30_000
    await stage.order({ kind: 'tier', target: 'retry-1s', order: 'pause', untilMs })
    await stage.advance(500)
    await scheduled(stage, 5)
    expect(await stage.until(() => stage.posts('a').length === 10)).toBe(true)
    for (const { startWallMs } of stage.posts('a').filter(({ attempt }) => attempt === 2)) {
      expect(startWallMs).toBeGreaterThanOrEqual(untilMs)
      expect(startWallMs).toBeLessThan(untilMs + 1_000)
    }
  })

  test.each([
    { from: 'what waited under a pause', early: true },
    { from: 'what comes due meanwhile', early: false },
  ])('throttled to 5/s: $from leaves at 5/s, within 20 %, over two workers', async ({ early }) => {
    const many = Object.fromEntries(
      upTo(12).map((i) => [`s${i}`, { endpoint: failsFirst(1), ordering: 'none' as const }]),
    )
    const stage = await new Stage(bySecond, 2).start(many)
    const order = early ? ({ order: 'pause' } as const) : ({ order: 'throttle', perSecond: 5 } as const)
    await stage.order({ kind: 'tier', target: 'retry-1s', ...order })
    await stage.advance(1_000)
    const lanes = upTo(12).map((i) => laneOf({ id: `s${i}`, ordering: 'none' }, '', 2))
    // As many for each lane, or one would be done early.
    const perLane = [0, 1].map((lane) => upTo(12).filter((i) => lanes[i] === lane))
    for (const ids of perLane) for (const n of upTo(60)) await stage.produce(`s${ids[n % ids.length]}`, null)
    if (early) await stage.order({ kind: 'tier', target: 'retry-1s', order: 'throttle', perSecond: 5 })
    const retries = () => stage.world.receiver.posts.filter(({ attempt }) => attempt === 2)
    expect(await stage.until(() => retries().length === 120, 120_000)).toBe(true)
    const times = retries().map(({ startMs }) => startMs)
    const perSecond = (119 * 1_000) / ((times.at(-1) as number) - (times[0] as number))
    expect(perSecond).toBeGreaterThan(4)
    expect(perSecond).toBeLessThan(6)
    await stage.drained()
  })
})

describe('subscriptions', () => {
  const pauses = {
    'its status': {
      pause: (stage: Stage, id: string) => stage.world.clock.drive(stage.world.setStatus(id, 'paused')),
      resume: (stage: Stage, id: string) => stage.world.clock.drive(stage.world.setStatus(id, 'active')),
    },
    'an order': {
      pause: (stage: Stage, id: string) => stage.order({ kind: 'subscription', target: id, order: 'pause' }),
      resume: (stage: Stage, id: string) => stage.order({ kind: 'subscription', target: id, order: 'resume' }),
    },
  }
  for (const [by, { pause, resume }] of Object.entries(pauses)) {
    test.each(['none', 'key', 'subscription'] as const)(
      `paused by ${by}, ordering %s: 500 events wait, also through a restart; resumed, all come, in order`,
      async (ordering) => {
        const stage = await new Stage({ span: spanOf(256) }).start({
          a: { endpoint: delivers(), ordering },
          other: { endpoint: delivers(), ordering },
        })
        await stage.produce('a', 'k0', 5)
        expect(await stage.until(() => stage.posts('a').length === 5)).toBe(true)
        await pause(stage, 'a')
        await stage.advance(1_000)
        const pausedMs = stage.nowMs
        for (const i of upTo(250)) await stage.produce('a', `k${i % 5}`)
        await stage.restartAll()
        for (const i of upTo(250)) await stage.produce('a', `k${i % 5}`)
        // More than a lane's span passes by.
        await stage.produce('other', 'x', 300)
        expect(await stage.until(() => stage.accepted('other').length >= 300)).toBe(true)
        expect(stage.posts('a', pausedMs)).toEqual([])
        await resume(stage, 'a')
        await stage.drained()
        expect(new Set(stage.accepted('a').map(({ deliveryId }) => deliveryId)).size).toBe(505)
        for (const key of upTo(5)) {
          const sequences = stage.sequences('a', `k${key}`)
          if (ordering === 'none') sequences.sort((a, b) => a - b)
          expect(sequences).toEqual(upTo(key === 0 ? 105 : 100))
        }
        expect(stage.posts('a').every(({ attempt }) => attempt === 1)).toBe(true)
      },
    )
  }

  test('a pause by order that ends lets everything go within a second, with no arrival to wake it', async () => {
    const stage = await new Stage().start({ a: { endpoint: delivers() } })
    const untilMs = stage.world.clock.now() + 20_000
    await stage.order({ kind: 'subscription', target: 'a', order: 'pause', untilMs })
    await stage.advance(1_000)
    await stage.produce('a', 'k', 20)
    await stage.produce('a', null, 20)
    expect(await stage.until(() => stage.accepted('a').length === 40)).toBe(true)
    expect(Math.min(...stage.posts('a').map(({ startWallMs }) => startWallMs))).toBeGreaterThanOrEqual(untilMs)
    expect(Math.max(...stage.posts('a').map(({ startWallMs }) => startWallMs))).toBeLessThan(untilMs + 1_000)
    expect(stage.sequences('a', 'k')).toEqual(upTo(20))
  })

  test('what was under way when the pause came pins nothing: others go on past a whole span', async () => {
    const stage = await new Stage({ span: spanOf(64) }, 1, 1).start({
      a: { endpoint: delivers(400) },
      other: { endpoint: delivers() },
    })
    await stage.produce('a', 'k', 6)
    expect(await stage.until(() => stage.posts('a').length === 2)).toBe(true)
    await stage.order({ kind: 'subscription', target: 'a', order: 'pause' })
    await stage.produce('other', null, 200)
    expect(await stage.until(() => stage.accepted('other').length === 200, 20_000)).toBe(true)
    await stage.order({ kind: 'subscription', target: 'a', order: 'resume' })
    await stage.drained()
    expect(stage.sequences('a', 'k')).toEqual(upTo(6))
  })
})

describe('deliveries', () => {
  const slowRetries = { policy: { maxAttempts: 4, baseMs: 5_000, factor: 1, capMs: 5_000, retryAfterCapMs: 10_000 } }
  /** Down for 3 s; what comes then is to come back 8 s later. */
  const busy: Endpoint = () => ({ t: 'status', status: 503, afterMs: 5, retryAfter: '8' })
  const failing = (world: World) => changes(busy, world.clock.now() + 3_000, delivers())

  test.each([
    { to: undefined, settlement: 'cancelled', restart: false },
    { to: 'dead', settlement: 'dead', restart: false },
    { to: undefined, settlement: 'cancelled', restart: true },
  ])(
    'cancelled in a tier (to $to, restart $restart): settled without a POST; its line goes on at once',
    async (row) => {
      const stage = new Stage(slowRetries)
      await stage.start({ a: { endpoint: failing(stage.world) } })
      await stage.produce('a', 'k', 1)
      expect(await stage.until(() => stage.attempts('a').length === 1)).toBe(true)
      await stage.advance(3_000)
      const head = stage.line('a k k')?.head ?? ''
      await stage.produce('a', 'k', 3)
      const cancel = { kind: 'delivery', target: head, order: 'cancel', reason: 'sent by mistake' } as const
      if (row.restart) stage.world.holdAll()
      const orderedMs = stage.nowMs
      await stage.order(row.to === undefined ? cancel : { ...cancel, args: { to: row.to } })
      if (row.restart) {
        stage.world.startAll()
        await stage.running()
      }
      const runningMs = row.restart ? stage.nowMs : orderedMs
      expect(await stage.until(() => stage.accepted('a').length === 3, 60_000)).toBe(true)
      if (!row.restart) expect((stage.accepted('a').at(-1)?.startMs as number) - runningMs).toBeLessThan(1_000)
      await stage.drained()
      expect(stage.sequences('a', 'k')).toEqual([1, 2, 3])
      const settled = stage.attempts('a').filter(({ deliveryId }) => deliveryId === head)
      expect(settled.map(({ settlement }) => settlement)).toEqual(['scheduled', row.settlement])
      expect(settled.at(-1)).toMatchObject({ outcome: null, error: 'sent by mistake' })
      expect(stage.posts('a').filter(({ deliveryId }) => deliveryId === head)).toHaveLength(1)
      expect(stage.ids('dead', 'a')).toEqual(row.to === 'dead' ? [head] : [])
    },
  )

  test('cancelled while its POST is open: that one ends, there is no other, and the line goes on', async () => {
    const stage = await new Stage(slowRetries).start({
      a: { endpoint: failsFirst(1) },
      b: { endpoint: fails(503, 1_500) },
    })
    await stage.produce('b', 'k', 1)
    expect(await stage.until(() => stage.posts('b').length === 1)).toBe(true)
    const id = stage.posts('b')[0]?.deliveryId ?? ''
    await stage.order({ kind: 'delivery', target: id, order: 'cancel' })
    await stage.produce('b', 'k', 1)
    expect(await stage.until(() => stage.posts('b').length === 2, 3_000)).toBe(true)
    await stage.advance(1_000)
    expect(stage.attempts('b').map(({ outcome, settlement }) => ({ outcome, settlement }))).toContainEqual({
      outcome: 'retryable',
      settlement: 'cancelled',
    })
    expect(stage.posts('b').map(({ sequence }) => sequence)).toEqual([0, 1])
  })

  test('an order about a head that is no cancel, and one that is taken back, free nothing', async () => {
    const stage = new Stage(slowRetries)
    await stage.start({ a: { endpoint: failing(stage.world) } })
    await stage.produce('a', 'k', 3)
    expect(await stage.until(() => stage.line('a k k')?.state === 'blocked')).toBe(true)
    const target = stage.line('a k k')?.head as string
    await stage.order({ kind: 'delivery', target, order: 'pause' })
    await stage.write(`delivery:${target}`, null)
    await stage.drained()
    expect(stage.sequences('a', 'k')).toEqual([0, 1, 2])
  })
})

describe('while the body of a delivery is being fetched', () => {
  const claimed = async () => {
    const stage = await new Stage({}, 4, 2).start({ a: { endpoint: delivers() } })
    stage.world.objects.tookMs = 500
    await stage.produce('a', 'k', 1, { claimed: true })
    expect(await stage.until(() => stage.world.objects.asked > 0)).toBe(true)
    return stage
  }

  test('it is cancelled: it is not sent, and settled so', async () => {
    const stage = await claimed()
    await stage.order({ kind: 'delivery', target: stage.ids('deliveries', 'a')[0] as string, order: 'cancel' })
    await stage.drained()
    expect(stage.posts('a')).toEqual([])
    expect(stage.attempts('a').map(({ settlement }) => settlement)).toEqual(['cancelled'])
  })

  test('its subscription is paused: it is not sent before that is resumed', async () => {
    const stage = await claimed()
    await stage.order({ kind: 'subscription', target: 'a', order: 'pause' })
    await stage.advance(5_000)
    expect(stage.posts('a')).toEqual([])
    await stage.order({ kind: 'subscription', target: 'a', order: 'resume' })
    await stage.drained()
    expect(stage.posts('a').map(({ attempt, outcome }) => [attempt, outcome])).toEqual([[1, 'status 200']])
  })
})

describe('lines', () => {
  const settings = { policy: { maxAttempts: 2, baseMs: 5_000, factor: 1, capMs: 5_000, retryAfterCapMs: 10_000 } }
  /** Refuses the first event of each key for good, or until `until`. */
  const refusesFirst = (stage: Stage, refuse: Endpoint): Endpoint => {
    return (request) => {
      const post = stage.world.receiver.posts.findLast(({ deliveryId }) => deliveryId === request.deliveryId)
      return post?.sequence === 0 ? refuse(request) : delivers()(request)
    }
  }
  const stopped = async (restart: boolean) => {
    const stage = new Stage(settings)
    let refuse = fails(400)
    await stage.start({ a: { endpoint: refusesFirst(stage, (r) => refuse(r)), onDead: 'block' } })
    await stage.produce('a', 'k', 12)
    expect(await stage.until(() => stage.line('a k k')?.state === 'stopped')).toBe(true)
    await stage.advance(30_000)
    if (restart) await stage.restartAll()
    await stage.advance(5_000)
    expect(stage.posts('a')).toHaveLength(1)
    return { stage, head: stage.line('a k k')?.head ?? '', heal: () => (refuse = delivers()) }
  }

  test.each([false, true])('a dead head stops its line; released, it goes on (restart before: %s)', async (restart) => {
    const { stage, head } = await stopped(restart)
    const orderedMs = stage.nowMs
    await stage.order({ kind: 'line', target: 'a k k', order: 'resume', args: { head } })
    expect(await stage.until(() => stage.posts('a').length > 1, 1_000)).toBe(true)
    expect((stage.posts('a')[1] as PostEntry).startMs - orderedMs).toBeLessThan(1_000)
    await stage.drained()
    expect(stage.sequences('a', 'k')).toEqual(upTo(12).slice(1))
  })

  test('released while no instance runs: obeyed at the start, also by a clock that is behind', async () => {
    const { stage, head } = await stopped(false)
    stage.world.holdAll()
    await stage.order({ kind: 'line', target: 'a k k', order: 'resume', args: { head }, atMs: 1 })
    await stage.advance(1_000)
    stage.world.startAll()
    await stage.drained()
    expect(stage.sequences('a', 'k')).toEqual(upTo(12).slice(1))
  })

  test('a release is for the head that stands now: a line that stops again later stays, also after a restart', async () => {
    const stage = new Stage(settings)
    await stage.start({ a: { endpoint: fails(400), onDead: 'block' } })
    await stage.produce('a', 'k', 4)
    for (const n of [1, 2]) {
      const head = () => stage.posts('a')[n - 1]?.deliveryId
      expect(await stage.until(() => head() !== undefined && stage.line('a k k')?.head === head())).toBe(true)
      if (n === 1) await stage.order({ kind: 'line', target: 'a k k', order: 'resume' })
    }
    await stage.restartAll()
    await stage.advance(20_000)
    expect(stage.posts('a')).toHaveLength(2)
  })

  test.each([false, true])(
    'a redriven head comes back as head, before its followers (restart: %s)',
    async (restart) => {
      const { stage, head, heal } = await stopped(restart)
      heal()
      await stage.redrive(head)
      await stage.drained()
      expect(stage.sequences('a', 'k')).toEqual(upTo(12))
    },
  )

  test.each([false, true])(
    'released behind a head that is retried: followers go at once, the head is retried on its own, and frees nothing (restart: %s)',
    async (restart) => {
      const stage = new Stage(settings)
      // The head fails once; the first follower fails too: the line then stands behind that.
      const endpoint: Endpoint = (request) => {
        const post = stage.world.receiver.posts.findLast(({ deliveryId }) => deliveryId === request.deliveryId)
        const again: Answer = { t: 'status', status: 503, afterMs: 5, retryAfter: '9' }
        return (post?.sequence ?? 9) <= 1 && request.attempt === 1 ? again : delivers()(request)
      }
      await stage.start({ a: { endpoint } })
      await stage.produce('a', 'k', 1)
      expect(await stage.until(() => stage.line('a k k')?.state === 'blocked')).toBe(true)
      const first = stage.line('a k k')?.head
      await stage.advance(1_500)
      await stage.produce('a', 'k', 6)
      await stage.order({ kind: 'line', target: 'a k k', order: 'resume', args: { head: first as string } })
      expect(await stage.until(() => stage.posts('a').some(({ sequence }) => sequence === 1), 1_000)).toBe(true)
      if (restart) {
        expect(await stage.until(() => ![null, undefined, first].includes(stage.line('a k k')?.head))).toBe(true)
        await stage.restartAll()
      }
      await stage.drained()
      const taken = [...new Set(stage.sequences('a', 'k'))]
      expect(taken.filter((sequence) => sequence > 0)).toEqual([1, 2, 3, 4, 5, 6])
      expect(taken).toContain(0)
    },
  )

  test.each([undefined, 'dead'])(
    'a whole line cancelled (to %s): what waits is settled so, what comes later is delivered',
    async (to) => {
      const stage = new Stage({ policy: { ...settings.policy, maxAttempts: 9 } })
      const endpoint = refusesFirst(stage, fails(503))
      await stage.start({ a: { endpoint }, b: { endpoint: delivers() } })
      await stage.produce('a', 'k', 30)
      expect(await stage.until(() => (stage.line('a k k')?.count ?? 0) > 10)).toBe(true)
      const posts = stage.posts('a').length
      await stage.order({
        kind: 'line',
        target: 'a k k',
        order: 'cancel',
        reason: 'customer left',
        ...(to === undefined ? {} : { args: { to } }),
      })
      await stage.advance(1_000)
      await stage.produce('a', 'k', 5)
      await stage.restartAll()
      await stage.drained()
      // The restart may repeat what was delivered and not yet committed.
      const after = stage
        .posts('a')
        .slice(posts)
        .map(({ sequence }) => sequence)
      expect([...new Set(after)]).toEqual([30, 31, 32, 33, 34])
      const ends = stage.attempts('a').filter(({ settlement }) => settlement !== 'scheduled')
      expect(ends.filter(({ settlement }) => settlement === 'done')).toHaveLength(5)
      const without = ends.filter(({ outcome }) => outcome === null)
      expect(without).toHaveLength(30)
      for (const { settlement, error } of without)
        expect([settlement, error]).toEqual([to ?? 'cancelled', 'customer left'])
      expect(stage.ids('dead', 'a')).toHaveLength(to === 'dead' ? 30 : 0)
    },
  )

  test.each([false, true])(
    'a stopped line of a subscription that is deleted ends: what waited is cancelled (deleted while nobody runs: %s)',
    async (down) => {
      const { stage, head } = await stopped(false)
      const { world } = stage
      if (down) world.holdAll()
      await world.clock.drive(world.unsubscribe('a'))
      if (down) world.startAll()
      await stage.drained()
      expect(stage.posts('a')).toHaveLength(1)
      expect(stage.line('a k k')).toBeNull()
      const settled = stage.attempts('a').filter(({ deliveryId }) => deliveryId !== head)
      expect(settled.map(({ settlement }) => settlement)).toEqual(upTo(11).map(() => 'cancelled'))
    },
  )

  test('a head that its line went on without, parked because its subscription is paused, is cancelled with the line', async () => {
    const stage = new Stage(settings)
    await stage.start({ a: { endpoint: refusesFirst(stage, fails(503)) } })
    await stage.produce('a', 'k', 1)
    expect(await stage.until(() => stage.line('a k k')?.state === 'blocked')).toBe(true)
    const head = stage.line('a k k')?.head as string
    await stage.order({ kind: 'line', target: 'a k k', order: 'resume', args: { head } })
    await stage.order({ kind: 'subscription', target: 'a', order: 'pause' })
    expect(await stage.until(() => stage.ids('parked', 'a').includes(head), 30_000)).toBe(true)
    await stage.order({ kind: 'line', target: 'a k k', order: 'cancel' })
    await stage.advance(1_000)
    await stage.order({ kind: 'subscription', target: 'a', order: 'resume' })
    await stage.drained()
    expect(stage.posts('a')).toHaveLength(1)
    expect(stage.attempts('a').map(({ settlement }) => settlement)).toEqual(['scheduled', 'cancelled'])
  })

  test('a cancelled line of a paused subscription empties; a newer event waits for the resume and does not spin', async () => {
    const stage = await new Stage(settings).start({ a: { endpoint: delivers() } })
    await stage.order({ kind: 'subscription', target: 'a', order: 'pause' })
    await stage.advance(500)
    await stage.produce('a', 'k', 20)
    await stage.advance(2_000)
    await stage.order({ kind: 'line', target: 'a k k', order: 'cancel' })
    expect(await stage.until(() => stage.attempts('a').length === 20, 10_000)).toBe(true)
    await stage.advance(1_000)
    await stage.produce('a', 'k', 3)
    await stage.advance(10_000)
    expect(stage.posts('a')).toEqual([])
    await stage.order({ kind: 'subscription', target: 'a', order: 'resume' })
    await stage.drained()
    expect(stage.sequences('a', 'k')).toEqual([20, 21, 22])
  })
})

describe('circuits and credit', () => {
  const circuit = { failures: 3, failureRate: 1, minSamples: 50, windowMs: 30_000, openMs: 2_000, maxOpenMs: 30_000 }
  const policy = { maxAttempts: 30, baseMs: 1_300, factor: 1, capMs: 1_300, retryAfterCapMs: 10_000 }

  test('a dead origin with 20 subscriptions: one probe at a time per process, arrivals wait, all come when it is back', async () => {
    const stage = new Stage({ circuit, policy })
    const backMs = stage.world.clock.now() + 150_000
    const dead: Endpoint = changes(breaks('connect'), backMs, delivers())
    const ids = upTo(20).map((i) => `s${i}`)
    await stage.start(Object.fromEntries(ids.map((id) => [id, { endpoint: dead, url: `https://dead.test/${id}` }])))
    for (const id of ids) await stage.produce(id, 'k', 2)
    await stage.advance(15_000)
    const openMs = stage.nowMs
    const before = stage.world.receiver.posts.length
    for (const id of ids) {
      await stage.produce(id, 'k', 4)
      await stage.produce(id, null, 2)
    }
    await stage.advance(20_000)
    const marked = () => {
      // Each process probes on its own; a lane holds the mark of the one that owned it then.
      const untilMs = new Map<number, number>()
      for (const { record, partition } of stage.world.broker.committed('lane-state')) {
        if (record?.key?.toString() !== 'circuit:origin https://dead.test' || record.value === null) continue
        untilMs.set(partition, JSON.parse(record.value.toString()).untilMs)
      }
      return [...untilMs.values()]
    }
    const left = () => Math.min(...marked()) - stage.world.clock.now()
    expect(await stage.until(() => marked().length > 0 && left() > 10_000, 100_000)).toBe(true)
    const untilMs = Math.min(...marked())
    const killedMs = stage.nowMs
    await stage.restartAll()
    expect(stage.world.clock.now()).toBeLessThan(untilMs - 1_000)
    await stage.advance(10_000)
    const since = (fromMs: number) => stage.world.receiver.posts.filter(({ startMs }) => startMs >= fromMs)
    // As its predecessors left it: nothing is tried before that time, by anybody.
    expect(await stage.until(() => since(killedMs).length > 0)).toBe(true)
    expect(since(killedMs)[0]?.startWallMs).toBeGreaterThanOrEqual(untilMs)
    for (const process of ['w0', 'w1']) {
      const probes = since(openMs).filter((post) => post.process === process && post.startWallMs < backMs)
      for (const [i, probe] of probes.entries()) {
        if (i > 0) expect(probe.startMs).toBeGreaterThanOrEqual(probes[i - 1]?.endMs ?? Number.POSITIVE_INFINITY)
      }
    }
    // 20 × 6 arrivals, and hardly an attempt: a probe per opening and process.
    expect(since(openMs).length).toBeLessThan(30)
    expect(before).toBeGreaterThan(0)
    await stage.drained()
    for (const id of ids) {
      expect(stage.sequences(id, 'k')).toEqual(upTo(6))
      expect(stage.sequences(id, null).sort()).toEqual([0, 1])
      expect(stage.ids('dead', id)).toEqual([])
    }
  })

  test('an outage without a circuit: dead letters stay within the credit of each process, the rest waits and comes', async () => {
    const stage = new Stage({
      deadCredit: 5,
      policy: { maxAttempts: 4, baseMs: 1_300, factor: 1, capMs: 1_300, retryAfterCapMs: 10_000 },
    })
    const backMs = stage.world.clock.now() + 8_000
    await stage.start({ a: { endpoint: changes(fails(503), backMs, delivers()), ordering: 'none' } })
    await stage.produce('a', null, 60)
    await stage.drained()
    const dead = stage.ids('dead', 'a')
    expect(dead.length).toBeGreaterThan(0)
    expect(dead.length).toBeLessThanOrEqual(5)
    expect(new Set([...dead, ...stage.accepted('a').map(({ deliveryId }) => deliveryId)]).size).toBe(60)
  })
})

test('what waits behind a head that is retried or held pins nothing: others go on past a whole span', async () => {
  const busy: Endpoint = ({ attempt }) =>
    attempt === 1 ? { t: 'status', status: 503, afterMs: 5, retryAfter: '10' } : delivers()({} as never)
  const stage = await new Stage({ span: spanOf(64) }, 1, 1).start({
    a: { endpoint: busy },
    other: { endpoint: delivers() },
  })
  await stage.order({ kind: 'tier', target: 'retry-1s', order: 'pause' })
  await stage.advance(500)
  await stage.produce('a', 'k', 4)
  await stage.produce('other', null, 300)
  expect(await stage.until(() => stage.accepted('other').length === 300, 5_000)).toBe(true)
  await stage.order({ kind: 'tier', target: 'retry-1s', order: 'resume' })
  await stage.drained()
  expect(stage.sequences('a', 'k')).toEqual([0, 1, 2, 3])
})

test('heads that are due while their subscription is paused do not hold back the retries of others', async () => {
  const stage = await new Stage(
    { policy: { maxAttempts: 9, baseMs: 1_300, factor: 1, capMs: 1_300, retryAfterCapMs: 1_300 } },
    1,
    1,
  ).start({
    a: { endpoint: failsFirst(1) },
    other: { endpoint: failsFirst(1), ordering: 'none' },
  })
  for (const i of upTo(80)) await stage.produce('a', `k${i}`)
  expect(await stage.until(() => stage.posts('a').length >= 80)).toBe(true)
  await stage.order({ kind: 'subscription', target: 'a', order: 'pause' })
  await stage.advance(4_000)
  await stage.produce('other', null, 20)
  expect(await stage.until(() => stage.accepted('other').length === 20, 30_000)).toBe(true)
  await stage.order({ kind: 'subscription', target: 'a', order: 'resume' })
  await stage.drained()
  for (const i of upTo(80)) expect(stage.sequences('a', `k${i}`)).toEqual([0])
})
