import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { createGroupAssigner } from '../../src/kafka/group-assigner.ts'
import type { GroupLink } from '../../src/kafka/group-link.ts'
import { GroupMember } from '../../src/kafka/group-member.ts'
import { GroupPartitions } from '../../src/kafka/group-partitions.ts'
import { library } from '../../src/kafka/load.ts'
import { realClock } from '../support/clock.ts'

const codes = { REBALANCE_IN_PROGRESS: 27, REQUEST_TIMED_OUT: 7, UNKNOWN_MEMBER_ID: 25 }
const topic = 't'
const assigner = createGroupAssigner('lanes', [topic])
const bytes = (partitions: number) =>
  assigner.assign(new Map([[topic, partitions]]), [{ memberId: 'm', memberMetadata: Buffer.alloc(0) }])[0]
    ?.memberAssignment as Buffer

/** A coordinator by script: each request takes the next answer of its kind, an error by name. */
function scripted(answers: Record<string, (object | keyof typeof codes)[]>) {
  const sent: { api: string; args: Record<string, unknown> }[] = []
  const link = {
    coordinator: async () => ({}),
    forgetCoordinator: () => {},
    refresh: async () => {},
    counts: () => new Map([[topic, 2]]),
    call: async (_node: unknown, api: string, args: Record<string, unknown>) => {
      sent.push({ api, args })
      const answer = answers[api]?.shift() ?? {}
      if (typeof answer === 'string') throw library.createErrorFromCode(codes[answer])
      return answer
    },
  }
  return { link: link as unknown as GroupLink, sent }
}

const joinedAs = (memberId: string, generationId: number) => ({
  memberId,
  generationId,
  leaderId: 'other',
  members: [],
})
const newMember = () =>
  new GroupMember(realClock, 'g', { sessionMs: 6000, heartbeatMs: 1000, rebalanceMs: 9000 }, assigner)

describe('what counts as kept', () => {
  const sync = { memberAssignment: bytes(2) }
  const table: [string, Record<string, (object | keyof typeof codes)[]>, boolean][] = [
    [
      'the very next generation under the same id',
      { JoinGroup: [joinedAs('m', 1), joinedAs('m', 2)], SyncGroup: [sync, sync] },
      true,
    ],
    [
      'a generation that was joined but not synced lies between: others may have owned our lanes in it',
      {
        JoinGroup: [joinedAs('m', 1), joinedAs('m', 2), joinedAs('m', 3)],
        SyncGroup: [sync, 'REBALANCE_IN_PROGRESS', sync],
      },
      false,
    ],
    ['another member id', { JoinGroup: [joinedAs('m', 1), joinedAs('n', 2)], SyncGroup: [sync, sync] }, false],
  ]
  test.each(table)('%s', async (_name, answers, continuous) => {
    const { link } = scripted(answers)
    const member = newMember()
    const first = await member.join(link, [])
    expect(first).toMatchObject({ continuous: false, generation: 1 })
    let second = await member.join(link, first.assigned).catch(() => undefined)
    second ??= await member.join(link, first.assigned)
    expect(second.continuous).toBe(continuous)
  })

  test('nothing, once the membership was lost, though the next generation follows at once', async () => {
    const { link, sent } = scripted({ JoinGroup: [joinedAs('m', 1), joinedAs('m', 2)], SyncGroup: [sync, sync] })
    const member = newMember()
    const { assigned } = await member.join(link, [])
    member.lose(library.createErrorFromCode(22))
    expect(member.leaseAgeMs()).toBe(Number.POSITIVE_INFINITY)
    expect((await member.join(link, assigned)).continuous).toBe(false)
    // Its id is presented all the same, so that the group does not wait for a ghost.
    expect(sent.filter((s) => s.api === 'JoinGroup').map((s) => s.args.memberId)).toEqual(['', 'm'])
  })

  test('pause never survives an assignment, the position only where kept', () => {
    const partitions = new GroupPartitions()
    const at = (partition: number) => ({ topic, partition })
    partitions.replace([at(0), at(1)], false)
    for (const p of [0, 1]) partitions.seek(at(p), 7)
    for (const p of partitions.all()) p.paused = false
    expect(partitions.active()).toHaveLength(2)
    const old = partitions.get(at(0))
    const change = partitions.replace([at(0), at(2)], true)
    expect(change).toEqual({ kept: [at(0)], gained: [at(2)], lost: [at(1)] })
    expect(partitions.active()).toEqual([])
    expect(partitions.all().map((p) => p.position)).toEqual([7, null])
    // A fetch of before the join asked for another object: what it brings is dropped.
    expect(old !== undefined && partitions.accepts({ ...old, paused: false }, 7)).toBe(false)
    expect(partitions.replace([at(0)], false)).toEqual({ gained: [at(0)], kept: [], lost: [at(0), at(2)] })
  })
})

describe('stock kafkajs', () => {
  test('keeps a pause over revoke and assign: paused for ever', () => {
    const SubscriptionState = createRequire(import.meta.url)('kafkajs/src/consumer/subscriptionState')
    const state = new SubscriptionState()
    state.assign([{ topic, partitions: [0] }])
    state.pause([{ topic, partitions: [0] }])
    state.assign([])
    state.assign([{ topic, partitions: [0] }])
    expect(state.isPaused(topic, 0)).toBe(true)
  })
})

describe('commit', () => {
  const offsets = [{ topic, partition: 0, offset: 5, metadata: '' }]
  const accepted = { responses: [{ topic, partitions: [{ partition: 0, errorCode: 0 }] }] }

  test('is sent once: a time-out is the caller’s, and the next commit goes out under the new generation only when asked', async () => {
    const sync = { memberAssignment: bytes(1) }
    const { link, sent } = scripted({
      JoinGroup: [joinedAs('m', 1), joinedAs('m', 2)],
      SyncGroup: [sync, sync],
      OffsetCommit: ['REQUEST_TIMED_OUT', accepted],
    })
    const member = newMember()
    await member.join(link, [])
    await expect(member.commit(link, offsets)).rejects.toMatchObject({ code: 'broker.unavailable' })
    await member.join(link, [])
    const commits = () => sent.filter((s) => s.api === 'OffsetCommit').map((s) => s.args.groupGenerationId)
    expect(commits()).toEqual([1])
    await member.commit(link, offsets)
    expect(commits()).toEqual([1, 2])
  })

  test('stock kafkajs sends the failed commit again under the generation of the rejoin', async () => {
    const Runner = createRequire(import.meta.url)('kafkajs/src/consumer/runner')
    const generations: number[] = []
    let generation = 1
    const runner = new Runner({
      logger: { namespace: () => ({ debug() {}, namespace: () => ({}) }) },
      consumerGroup: {
        commitOffsets: async () => {
          generations.push(generation)
          if (generation++ === 1) throw library.createErrorFromCode(codes.REQUEST_TIMED_OUT)
        },
      },
      retry: { initialRetryTime: 1 },
    })
    runner.running = true
    await runner.commitOffsets({ topics: [] })
    expect(generations).toEqual([1, 2])
  })

  test('is refused while a join is under way, and by who is no member', async () => {
    const { link, sent } = scripted({})
    const member = newMember()
    await expect(member.commit(link, offsets)).rejects.toMatchObject({ code: 'consumer.failed' })
    let answer: (joined: object) => void = () => {}
    const waiting = {
      ...link,
      call: (_node: unknown, api: string) =>
        api === 'JoinGroup'
          ? new Promise((resolve) => (answer = resolve))
          : Promise.resolve({ memberAssignment: bytes(1) }),
    } as unknown as GroupLink
    const joining = member.join(waiting, [])
    await expect(member.commit(link, offsets)).rejects.toMatchObject({ code: 'consumer.failed' })
    await Promise.resolve()
    answer(joinedAs('m', 1))
    await joining
    expect(sent).toEqual([])
  })
})
