import { describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/core/attempt.ts'
import type { Settled } from '../sim/evidence.ts'
import type { PostEntry } from '../sim/receiver.ts'
import { explainDuplicates } from './duplicates.ts'
import type { Struck } from './fleet.ts'

const sessionMs = 9_000

function post(process: string, attempt: number, startMs: number, endMs: number | null, status = 200): PostEntry {
  return {
    deliveryId: 'd',
    subscription: 's',
    key: null,
    sequence: 0,
    attempt,
    url: '/s',
    process,
    incarnation: 1,
    startMs,
    startLocalMs: startMs,
    startWallMs: startMs,
    endMs,
    acceptedMs: endMs === null || status >= 300 ? null : endMs,
    retryAfterMs: null,
    outcome: endMs === null ? 'open' : `status ${status}`,
  }
}

function fault(kind: string, process: string | null, atMs: number, untilMs = atMs): Struck {
  return { kind, process, incarnation: process === null ? null : 1, atMs, untilMs }
}

function settled(attempt: number, decidedMs: number, outcome: Attempt['outcome'] = 'delivered'): Settled {
  const settlement = outcome === 'delivered' ? 'done' : 'scheduled'
  return {
    appendedMs: decidedMs,
    decidedMs,
    attempt: { deliveryId: 'd', attempt, outcome, settlement } as Attempt,
  }
}

const twice = (endMs: number | null = 110) => [post('w0', 1, 100, endMs), post('w1', 1, 5_000, 5_010)]

describe('a second POST of an attempt', () => {
  test.each([
    ['was open when its sender was killed', twice(null), [fault('crash', 'w0', 105)], { open: 1 }],
    ['was over and not committed then', twice(), [fault('crash', 'w0', 300)], { uncommitted: 1 }],
    [
      'was over and not committed when the broker was killed',
      twice(),
      [fault('leader', null, 300, 900)],
      { uncommitted: 1 },
    ],
    [
      'was left in the sockets of a process that was stopped',
      [post('w1', 1, 100, 110), post('w0', 1, 5_100, 5_110)],
      [fault('stall', 'w0', 90, 5_000)],
      { zombie: 1 },
    ],
  ])('%s', (_, posts, faults, counted) => {
    const found = explainDuplicates(posts, [settled(1, 6_000)], faults, sessionMs)
    expect(found.problems).toEqual([])
    expect(found).toMatchObject({ open: 0, uncommitted: 0, zombie: 0, ...counted })
  })

  test.each([
    ['without any fault', twice(), [settled(1, 6_000)], []],
    ['when the fault struck another process', twice(), [settled(1, 6_000)], [fault('crash', 'w2', 300)]],
    ['when it was committed before the fault', twice(), [settled(1, 200)], [fault('crash', 'w0', 300)]],
    ['before the fault', twice(), [settled(1, 6_000)], [fault('crash', 'w0', 5_500)]],
    ['begun long after the broker was back', twice(), [settled(1, 6_000)], [fault('leader', null, -30_000, -20_000)]],
  ])('is not explained %s', (_, posts, log, faults) => {
    const { problems } = explainDuplicates(posts, log, faults, sessionMs)
    expect(problems).toEqual([expect.stringContaining('repeats')])
  })
})

test('a further attempt after a 2xx is explained by nothing but a log that says no answer came', () => {
  const posts = [post('w0', 1, 100, 110), post('w0', 2, 900, 910)]
  const late = explainDuplicates(posts, [settled(1, 200, 'retryable')], [], sessionMs)
  expect(late).toMatchObject({ unanswered: 1, problems: [] })
  const wrong = explainDuplicates(posts, [settled(1, 200)], [fault('crash', 'w0', 150)], sessionMs)
  expect(wrong.problems).toEqual([expect.stringContaining('after s/-#0 attempt 1')])
})
