import { describe, expect, test } from 'vitest'
import { headerMap } from '../../src/core/record.ts'
import { changes, delivers, type Endpoint, failsFirst, hangs } from './endpoints.ts'
import { Stage } from './stage.ts'
import { spanOf } from './world.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

/** Each delivery's first attempt is answered 503 with `Retry-After`, seconds by its sequence; the second is taken. */
function retryAfter(seconds: (n: number) => number): Endpoint {
  return ({ attempt, n }) =>
    attempt === 1
      ? { t: 'status', status: 503, afterMs: 5, retryAfter: String(seconds(n)) }
      : { t: 'status', status: 200, afterMs: 5 }
}

function dueTimes(stage: Stage, subscription: string): Map<string, number> {
  const due = stage.attempts(subscription).filter(({ attempt }) => attempt === 1)
  return new Map(due.map(({ deliveryId, dueMs }) => [deliveryId, dueMs as number]))
}

/** How late each second attempt started, ms. */
function lateness(stage: Stage, subscription: string): number[] {
  const due = dueTimes(stage, subscription)
  return stage
    .posts(subscription)
    .filter(({ attempt }) => attempt === 2)
    .map(({ deliveryId, startWallMs }) => startWallMs - (due.get(deliveryId) as number))
}

describe('due times', () => {
  const policy = { maxAttempts: 8, baseMs: 1_300, factor: 1, capMs: 1_300, retryAfterCapMs: 60_000 }

  test('a retry whose lane moves away and back meanwhile is on time, not early (11)', async () => {
    const stage = await new Stage({ policy }, 2).start({
      a: { endpoint: retryAfter(() => 30), ordering: 'none' },
      b: { endpoint: retryAfter(() => 30), ordering: 'none' },
    })
    const { world } = stage
    for (const id of ['a', 'b']) await stage.produce(id, null, 5)
    await stage.advance(4_000)
    for (const worker of world.workers) {
      await world.clock.drive(world.restart(worker, 500))
      await stage.running()
    }
    expect(stage.nowMs).toBeLessThan(30_000)
    await stage.drained()
    for (const id of ['a', 'b']) {
      const late = lateness(stage, id)
      expect(late).toHaveLength(5)
      for (const ms of late) {
        expect(ms).toBeGreaterThanOrEqual(0)
        expect(ms).toBeLessThan(500)
      }
    }
  })

  test('a retry whose lane comes back only after its due time starts at once (11)', async () => {
    const stage = await new Stage({ policy }, 2).start({ a: { endpoint: retryAfter(() => 10), ordering: 'none' } })
    await stage.produce('a', null, 5)
    await stage.advance(4_000)
    stage.world.holdAll()
    await stage.advance(20_000)
    stage.world.startAll()
    const backMs = stage.nowMs
    await stage.drained()
    const second = stage.posts('a').filter(({ attempt }) => attempt === 2)
    expect(second).toHaveLength(5)
    // The session of the dead has to end first.
    for (const { startMs } of second) expect(startMs - backMs).toBeLessThan(10_000)
    for (const ms of lateness(stage, 'a')) expect(ms).toBeGreaterThanOrEqual(0)
  })

  test('2,000 delays of 1 to 60 s, mixed in one tier: each within a second of its due time, none early (13)', async () => {
    const settings = {
      policy,
      flow: { maxRecords: 3_000, maxBytes: 1 << 26, tierMaxRecords: 3_000, tierMaxBytes: 1 << 26 },
      maxBytes: 1 << 28,
    }
    const stage = await new Stage(settings, 1, 1).start({
      a: { endpoint: retryAfter((n) => 1 + ((n * 37) % 60)), ordering: 'none' },
    })
    for (const _ of upTo(20)) {
      await stage.produce('a', null, 100)
      await stage.advance(100)
    }
    await stage.drained()
    const late = lateness(stage, 'a')
    expect(late).toHaveLength(2_000)
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...late)).toBeLessThan(1_000)
  }, 120_000)
})

describe('a lane', () => {
  test('one delivery that never ends, 3,000 behind it: the span and its description stay bounded, and all goes on after its time-out (15)', async () => {
    const settings = {
      span: spanOf(256),
      policy: { maxAttempts: 2, baseMs: 1_000, factor: 1, capMs: 1_000, retryAfterCapMs: 1_000 },
    }
    const stage = new Stage(settings, 1, 1, { timeoutMs: 30_000 })
    await stage.start({
      stuck: { endpoint: hangs(), ordering: 'none' },
      quick: { endpoint: delivers(), ordering: 'none' },
    })
    await stage.produce('stuck', null)
    await stage.advance(100)
    const spans: number[] = []
    const reasons = new Set<string>()
    const look = () => {
      const lane = [...(stage.world.workers[0]?.pipeline?.deliverer?.lanes ?? [])][0]?.lane
      if (lane === undefined || lane === null) return
      spans.push(lane.ledger.deliveries.span)
      for (const { index, reason } of lane.flow.pauses()) if (index === 0) reasons.add(reason)
    }
    for (const _ of upTo(30)) {
      await stage.produce('quick', null, 100)
      await stage.advance(100)
      look()
    }
    const before = stage.accepted('quick').length
    expect(before).toBeLessThan(400)
    await stage.drained()
    look()
    expect(stage.accepted('quick')).toHaveLength(3_000)
    expect(Math.max(...spans)).toBe(256)
    expect([...reasons]).toEqual(['span'])
    for (const { metadata } of stage.world.broker.group('deliverers').commits)
      expect(metadata.length).toBeLessThan(4_096)
  }, 120_000)

  test.each(['someone else was here', 'h1:%%%%', 'h2:gA==', 'h3:', 'h9:AAAA'])(
    'metadata that is not ours, %j, is ignored with a warning: what is above the offset comes again, nothing is lost (25)',
    async (metadata) => {
      const stage = new Stage({}, 1, 1, { timeoutMs: 30_000 })
      await stage.start({
        stuck: { endpoint: changes(hangs(), stage.world.clock.now() + 10_000, delivers()), ordering: 'none' },
        a: { endpoint: delivers(), ordering: 'none' },
      })
      const { world } = stage
      await stage.produce('stuck', null)
      await stage.produce('a', null, 10)
      await stage.advance(3_000)
      expect(stage.sequences('a', null)).toHaveLength(10)
      world.holdAll()
      await stage.advance(10_000)
      const group = world.broker.group('deliverers')
      const at = group.committed({ topic: 'deliveries', partition: 0 })
      expect(at.offset).toBe(0)
      group.apply([{ ...at, metadata }])
      world.startAll()
      await stage.produce('a', null, 5)
      await stage.drained()
      expect(stage.log.filter(({ name }) => name === 'lane.foreign_metadata')).toHaveLength(1)
      expect(new Set(stage.sequences('a', null)).size).toBe(15)
      expect(stage.sequences('a', null)).toHaveLength(25)
      expect(stage.accepted('stuck')).toHaveLength(1)
    },
  )

  test('a record too large to be moved goes to rejected by its place; what is behind it goes on (21)', async () => {
    const stage = await new Stage({}, 1, 1).start({ a: { endpoint: failsFirst(1), ordering: 'none' } })
    await stage.produce('a', null, 1)
    await stage.drained()
    const { world } = stage
    const model = world.broker.committed('deliveries')[0]?.record
    const headers = Object.assign(headerMap(), model?.headers, { big: Buffer.alloc(1_010_000) })
    await world.clock.drive(
      world.append({ topic: 'deliveries', partition: 0, key: 'a', value: Buffer.from('x'), headers }),
    )
    await stage.produce('a', null, 3)
    await stage.drained()
    expect(world.broker.committed('rejected')).toHaveLength(1)
    expect(new Set(stage.sequences('a', null)).size).toBe(4)
  })

  test('a blocked key is not attempted before 20,000 records of lane-state have been read to their end (18)', async () => {
    const policy = { maxAttempts: 8, baseMs: 5_000, factor: 1, capMs: 5_000, retryAfterCapMs: 60_000 }
    const stage = await new Stage({ policy }, 1, 1).start({ a: { endpoint: retryAfter(() => 20) } })
    const { world } = stage
    for (let from = 0; from < 20_000; from += 1_000) {
      const appends = upTo(1_000).map((i) => {
        const stream = `s/${from + i}`
        const state = { v: 1, kind: 'stream', stream, generation: 1, offset: 1, subscriptionId: 'x' }
        const value = Buffer.from(JSON.stringify(state))
        return world.append({ topic: 'lane-state', partition: 0, key: `stream:${stream}`, value, headers: headerMap() })
      })
      await world.clock.drive(Promise.all(appends))
    }
    await stage.produce('a', 'k', 4)
    await stage.advance(3_000)
    expect(world.broker.committed('lane-state').length).toBeGreaterThan(20_000)
    expect(stage.posts('a')).toHaveLength(1)
    await stage.restartAll()
    await stage.drained()
    expect(stage.sequences('a', 'k')).toEqual([0, 1, 2, 3])
    expect(stage.posts('a').map(({ sequence }) => sequence)).toEqual([0, 0, 1, 1, 2, 2, 3, 3])
  }, 120_000)
})

describe('a subscription that its lane does not know yet', () => {
  test.each(['w0', 'w1'])('what comes of it while %s asks stays in order', async (behind) => {
    const stage = await new Stage({}, 4, 2, { broker: { maxFetchRecords: 1 } }).start({ old: { endpoint: delivers() } })
    const { world } = stage
    const ids = upTo(12).map((i) => `new${i}`)
    // Longer than it takes to make the subscriptions and to route their events, shorter than a session.
    world.broker.stall(behind, 2_000)
    for (const id of ids) {
      world.receiver.serve(`https://${id}.test/`, id, delivers())
      await world.clock.drive(world.subscribe(id, { types: [id], url: `https://${id}.test/` }))
    }
    for (const id of ids) await stage.produce(id, 'k', 6)
    await stage.drained()
    for (const id of ids) expect(stage.sequences(id, 'k'), id).toEqual(upTo(6))
  })
})

describe('a line of a subscription whose backlog is passed by', () => {
  /** A process with less memory takes the lane over while the first of a line is open and the others are parked behind it. */
  const takenOver = async () => {
    const stage = new Stage({ span: spanOf(256) }, 1, 1, { timeoutMs: 60_000, broker: { maxFetchRecords: 1 } })
    const { world } = stage
    const { flow, executor } = world.settings
    const set = (maxRecords: number, minShare: number, maxPerSubscription: number) =>
      Object.assign(world.settings, {
        flow: { ...flow, maxRecords },
        crowd: { minShare, keep: 1, behind: 2 },
        executor: { ...executor, maxPerSubscription },
      })
    set(10, 4, 16)
    const endpoint: Endpoint = () => ({ t: 'status', status: 200, afterMs: 15_000 })
    await stage.start({ a: { endpoint }, b: { endpoint: delivers(), ordering: 'none' } })
    for (const i of upTo(7)) await stage.produce('a', `x${i}`)
    await stage.produce('a', 'k', 4)
    await stage.produce('b', null, 12)
    expect(await stage.until(() => stage.posts('a').some(({ key }) => key === 'k'), 30_000)).toBe(true)
    await stage.advance(1_500)
    expect(stage.ids('parked', 'a').length).toBeGreaterThanOrEqual(2)
    set(6, 2, 2)
    world.holdAll()
    await stage.advance(500)
    world.startAll()
    const lane = () => [...(world.workers[0]?.pipeline?.deliverer?.lanes ?? [])][0]?.lane
    expect(await stage.until(() => (lane()?.bypass.size ?? 0) > 0, 30_000)).toBe(true)
    await stage.drained()
    return stage.sequences('a', 'k').filter((sequence, i, all) => all.indexOf(sequence) === i)
  }

  test('what was passed by of it stands before what is parked', async () => {
    expect(await takenOver()).toEqual([0, 1, 2, 3])
  })
})

describe('an ordered key whose head fails six times, 200 followers, and a crash (17)', () => {
  const settings = {
    policy: { maxAttempts: 10, baseMs: 1_300, factor: 1, capMs: 1_300, retryAfterCapMs: 60_000 },
    deadCredit: 1_000_000,
  }
  const endpoint: Endpoint = ({ n, attempt, deliveryId }) =>
    headIs(deliveryId, n) && attempt <= 6
      ? { t: 'status', status: 503, afterMs: 5 }
      : { t: 'status', status: 200, afterMs: 5 }
  let head = ''
  function headIs(deliveryId: string, n: number): boolean {
    if (n === 1) head = deliveryId
    return deliveryId === head
  }

  /** Before the first commit, at it, while the head is retried, at the hand-back, while it drains, after it is open again. */
  test.each([30, 200, 320, 900, 2_500, 6_000, 9_000, 10_500, 11_000, 11_400, 11_800, 12_200, 13_000, 16_000])(
    'all processes killed after %s ms',
    async (killMs) => {
      const stage = await new Stage(settings, 2, 2).start({ a: { endpoint } })
      const startMs = stage.nowMs
      await stage.produce('a', 'k', 1)
      let killed = false
      const kill = async () => {
        if (killed || stage.nowMs - startMs < killMs) return
        killed = true
        await stage.restartAll()
      }
      for (const _ of upTo(40)) {
        await stage.produce('a', 'k', 5)
        await stage.advance(20)
        await kill()
      }
      await stage.advance(Math.max(0, startMs + killMs - stage.nowMs) + 1)
      await kill()
      await stage.drained()
      expect(killed).toBe(true)
      const taken = stage.sequences('a', 'k')
      // In order; what was open or not committed at the crash may come again, before anything later.
      for (const [i, sequence] of taken.entries()) {
        const before = i === 0 ? -1 : (taken[i - 1] as number)
        expect(sequence, `${taken}`).toBeLessThanOrEqual(Math.max(...taken.slice(0, i), -1) + 1)
        if (sequence <= before) expect(before - sequence).toBeLessThan(200)
      }
      expect([...new Set(taken)]).toEqual(upTo(201))
      const parked = stage.ids('parked', 'a')
      expect(new Set(parked).size).toBe(parked.length)
      expect(stage.world.drained()).toBe(true)
    },
    60_000,
  )
})
