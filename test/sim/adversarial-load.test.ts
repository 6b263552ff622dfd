import { describe, expect, test } from 'vitest'
import { headerMap } from '../../src/core/record.ts'
import { changes, delivers, fails, failsFirst, hangs, slow } from './endpoints.ts'
import { Stage } from './stage.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

/** Events appended side by side, in one partition and in order: what a backlog looks like. */
async function pile(stage: Stage, subscription: string, key: string | null, n: number): Promise<void> {
  const { world } = stage
  const appends = upTo(n).map((sequence) => {
    const headers = headerMap([
      ['event-type', subscription],
      ['event-id', `${subscription}/${key}/${sequence}`],
    ])
    const value = Buffer.from(JSON.stringify({ key, sequence }))
    return { topic: 'events', partition: 0, key, value, headers }
  })
  // The memory broker takes what one producer sends in the order in which it was sent.
  for (const record of appends) await world.clock.drive(world.append(record))
}

function p99(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] as number
}

describe('3,000 deliveries of one subscription whose endpoint hangs, then one for each of 50 others, in one lane (14)', () => {
  test.each([null, 'k'])(
    'with the ordering key %s: the 50 arrive within 15 s, memory stays within its bound, nothing is lost',
    async (key) => {
      const settings = {
        span: { max: 65_536, bits: 4_096, metadata: 512 },
        crowd: { minShare: 20, keep: 8, behind: 40 },
      }
      const stage = new Stage(settings, 1, 1, { timeoutMs: 10_000 })
      const { world } = stage
      const quiet = upTo(50).map((i) => `q${i}`)
      const backMs = world.clock.now() + 90_000
      const all = Object.fromEntries(quiet.map((id) => [id, { endpoint: delivers() }]))
      await stage.start({ noisy: { endpoint: changes(hangs(), backMs, delivers(1)), ordering: 'key' }, ...all })
      await pile(stage, 'noisy', key, 3_000)
      const fromMs = stage.nowMs
      for (const id of quiet) await stage.produce(id, 'x')
      let highest = 0
      const arrived = () => {
        highest = Math.max(highest, world.workers[0]?.pipeline?.budget.bytes ?? 0)
        return quiet.every((id) => stage.accepted(id).length === 1)
      }
      expect(await stage.until(arrived, 60_000)).toBe(true)
      for (const id of quiet) expect((stage.accepted(id)[0]?.acceptedMs as number) - fromMs).toBeLessThan(15_000)
      await stage.drained()
      expect(highest).toBeLessThanOrEqual(world.settings.maxBytes)
      const sequences = [...new Set(stage.sequences('noisy', key))]
      expect(new Set([...sequences, ...deadOf(stage, 'noisy')]).size).toBe(3_000)
      if (key !== null) expect(sequences).toEqual(sequences.toSorted((a, b) => a - b))
    },
    120_000,
  )
})

function deadOf(stage: Stage, subscription: string): number[] {
  return stage.world.broker.committed('dead').flatMap(({ record }) => {
    if (record?.key?.toString() !== subscription) return []
    return [(JSON.parse(record.value?.toString() ?? '') as { sequence: number }).sequence]
  })
}

test('one of ten endpoints is down for an hour: the others are as quick as without, it costs few attempts, and nothing of it dies (16)', async () => {
  const ids = upTo(10).map((i) => `s${i}`)
  const played = async (downForMs: number) => {
    const circuit = {
      failures: 5,
      failureRate: 0.8,
      minSamples: 20,
      windowMs: 30_000,
      openMs: 5_000,
      maxOpenMs: 300_000,
    }
    const policy = { maxAttempts: 80, baseMs: 2_000, factor: 2, capMs: 200_000, retryAfterCapMs: 200_000 }
    const stage = new Stage({ circuit, policy, deadCredit: 5 }, 2, 2)
    const backMs = stage.world.clock.now() + downForMs
    const endpoint = (id: string) => (id === 's0' ? changes(fails(503), backMs, slow(5, 40)) : slow(5, 40))
    await stage.start(Object.fromEntries(ids.map((id) => [id, { endpoint: endpoint(id) }])))
    const latencies: number[] = []
    for (let i = 0; i < 120; i++) {
      const atMs = stage.nowMs
      for (const id of ids) await stage.produce(id, 'k')
      await stage.advance(30_000)
      for (const id of ids.slice(1)) {
        const last = stage.accepted(id).at(-1)
        expect(last?.sequence).toBe(i)
        latencies.push((last?.acceptedMs as number) - atMs)
      }
    }
    const dead = stage.ids('dead', 's0').length
    const attempts = stage.posts('s0').length
    await stage.drained()
    expect(stage.sequences('s0', 'k')).toEqual(upTo(120))
    return { latencyMs: p99(latencies), dead, attempts }
  }
  const well = await played(0)
  const down = await played(3_600_000)
  expect(down.latencyMs).toBeLessThan(1.2 * well.latencyMs)
  expect(down.dead).toBe(0)
  expect(down.attempts).toBeLessThan(70)
}, 120_000)

test('the topic of dead letters has no leader when a delivery has used up its attempts: it stays undone, with an alarm, and is dead once when that is over (19)', async () => {
  const policy = { maxAttempts: 2, baseMs: 1_300, factor: 1, capMs: 1_300, retryAfterCapMs: 10_000 }
  const stage = await new Stage({ policy }, 2, 2).start({
    a: { endpoint: fails(503) },
    b: { endpoint: fails(400), ordering: 'none' },
    c: { endpoint: failsFirst(1) },
  })
  const { broker } = stage.world
  for (const log of broker.logs('dead')) broker.moveLeader('dead', log.partition, 40_000)
  for (const id of ['a', 'b', 'c']) await stage.produce(id, 'k', 3)
  await stage.advance(35_000)
  expect(broker.committed('dead')).toEqual([])
  expect(stage.attempts('b').filter(({ settlement }) => settlement === 'dead')).toEqual([])
  expect(
    stage.log.filter(({ level, name }) => level === 'error' && name === 'lane.commit_failed').length,
  ).toBeGreaterThan(0)
  await stage.drained()
  for (const id of ['a', 'b']) {
    const dead = stage.ids('dead', id)
    expect(dead).toHaveLength(3)
    expect(new Set(dead).size).toBe(3)
  }
  expect([...new Set(stage.sequences('c', 'k'))]).toEqual([0, 1, 2])
})

test('24 lanes that all wait for their tiers, nothing else to read: 99 of 100 retries start within 300 ms of their due time, none before (12)', async () => {
  const policy = { maxAttempts: 8, baseMs: 5_000, factor: 1, capMs: 5_000, retryAfterCapMs: 60_000 }
  const ids = upTo(60).map((i) => `s${i}`)
  const stage = await new Stage({ policy }, 24, 2).start(
    Object.fromEntries(ids.map((id) => [id, { endpoint: failsFirst(1), ordering: 'none' as const }])),
  )
  for (const _ of upTo(4)) {
    for (const id of ids) await stage.produce(id, null)
    await stage.advance(1_700)
  }
  await stage.drained()
  const late = ids.flatMap((id) => {
    const due = new Map(stage.attempts(id).map(({ deliveryId, dueMs }) => [deliveryId, dueMs]))
    for (const { deliveryId, attempt, dueMs } of stage.attempts(id)) if (attempt === 1) due.set(deliveryId, dueMs)
    return stage
      .posts(id)
      .filter(({ attempt }) => attempt === 2)
      .map(({ deliveryId, startWallMs }) => startWallMs - (due.get(deliveryId) as number))
  })
  expect(late).toHaveLength(240)
  expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
  expect(p99(late)).toBeLessThan(300)
})
