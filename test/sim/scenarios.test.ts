import { describe, expect, it } from 'vitest'
import { runShare } from './campaign.ts'

/** Ways in which other systems have lost, doubled or reordered; each alone, so that a failure names its cause. */
const scenarios: readonly (readonly [string, readonly string[], 'safety' | 'liveness'])[] = [
  ['gaps from markers and compaction stop no watermark', ['gap', 'compactEveryMs', 'lostCommit'], 'liveness'],
  ['a process killed between a POST and its commit repeats only what was open or uncommitted', ['crash'], 'safety'],
  [
    'a process killed between the records and the end of a transaction leaves one copy of each move',
    ['crash', 'lateCommit'],
    'safety',
  ],
  ['a commit whose answer is lost moves nothing twice and loses nothing', ['ambiguousCommit'], 'safety'],
  ['a stopped owner that wakes up changes no offset', ['stallEveryMs'], 'safety'],
  ['a commit that arrives after a rejoin takes no position back', ['lateCommit', 'expireEveryMs'], 'safety'],
  ['a batch for a lane that was lost meanwhile is dropped', ['duplicateFetch', 'expireEveryMs'], 'safety'],
  ['memberships that come and go leave no lane idle', ['expireEveryMs'], 'liveness'],
  [
    'moved leaders and coordinators leave no producer dead',
    ['leaderMoveEveryMs', 'coordinatorMoveEveryMs'],
    'liveness',
  ],
  ['retention past the committed offset costs exactly what it took', ['retentionEveryMs'], 'safety'],
  ['stepped clocks make nothing early by the clock it is judged by', ['clockJumpEveryMs'], 'safety'],
  ['a router that writes again is recognised', ['sendStored', 'sendPartly', 'sendLate', 'callFails'], 'safety'],
  ['a lane fenced by somebody else is rebuilt from what Kafka holds', ['fenced'], 'safety'],
]

describe('one kind of trouble at a time', () => {
  it.each(scenarios)('%s', { timeout: 120_000 }, async (_, faults, mode) => {
    const tally = await runShare({ mode, from: 1, seeds: 8, faults, plant: null, stopAtFirst: false, step: 1 })
    expect(tally.failures).toEqual([])
    expect(tally.runs).toBe(8)
  })
})
