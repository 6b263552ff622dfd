import { expect, test } from 'vitest'
import { collectCases } from '../../src/demo/cases.ts'
import { check, type Rule } from '../../src/demo/check.ts'
import type { Evidence } from '../../src/demo/evidence.ts'
import type { Request } from '../../src/demo/journal.ts'
import { delivery, goodRun, logged } from './run.ts'

function findingsOf(evidence: Evidence) {
  return check(evidence, collectCases(evidence))
}

/** The run with one request, found by delivery and attempt, changed. */
function request(run: Evidence, id: string, attempt: number, change: (request: Request) => Partial<Request>): Evidence {
  const at = run.requests.findIndex((r) => r.deliveryId === id && r.attempt === attempt)
  if (at === -1) throw new Error(`no request for ${id}`)
  return { ...run, requests: run.requests.map((r, i) => (i === at ? { ...r, ...change(r) } : r)) }
}

function without<T>(items: readonly T[], drop: (item: T) => boolean): T[] {
  const kept = items.filter((item) => !drop(item))
  if (kept.length === items.length) throw new Error('nothing to leave out')
  return kept
}

test('a run as it should be has no findings', () => {
  expect(findingsOf(goodRun())).toEqual([])
})

test('what a disabled subscription was not sent is told apart: held where it was routed, else not matched', () => {
  const { cases } = collectCases(goodRun())
  const gone = cases.filter(({ subscription }) => subscription.id === 'gone')
  expect(gone.map(({ event, fate }) => `${event.id} ${fate}`)).toEqual(['e1 dead', 'e2 held', 'e3 unmatched'])
})

/** Each row: what is tampered with, and the finding that must come of it. */
const tampered: readonly (readonly [string, (run: Evidence) => Evidence, Rule, RegExp])[] = [
  [
    'an event is missing in the topic',
    (run) => ({ ...run, produced: 4 }),
    'events',
    /4 events were acknowledged, 3 stand/,
  ],
  ['an event was rejected', (run) => ({ ...run, rejected: ['bad type'] }), 'events', /bad type/],
  [
    'a delivery was never written',
    (run) => ({
      ...run,
      deliveries: without(run.deliveries, ({ id }) => id === 'e3@ordered'),
      attempts: without(run.attempts, ({ deliveryId }) => deliveryId === 'e3@ordered'),
      requests: without(run.requests, ({ deliveryId }) => deliveryId === 'e3@ordered'),
    }),
    'lost',
    /event e3 .* for ordered: reached no final settlement/,
  ],
  [
    'a delivery waits for ever in a tier',
    (run) => ({
      ...run,
      attempts: without(run.attempts, (a) => a.deliveryId === 'e2@ordered' && a.attempt === 2),
      requests: without(run.requests, (r) => r.deliveryId === 'e2@ordered' && r.attempt === 2),
    }),
    'lost',
    /event e2 .* for ordered/,
  ],
  [
    'what is held for a disabled subscription is done by its offset, and parked nowhere',
    (run) => ({ ...run, deliveries: run.deliveries.map((d) => ({ ...d, done: true })) }),
    'lost',
    /event e2 .* for gone/,
  ],
  [
    'a delivery of an event that the subscription does not want',
    (run) => ({ ...run, deliveries: [...run.deliveries, delivery('e9@ordered')] }),
    'stranger',
    /e9/,
  ],
  [
    'a request with an unknown id',
    (run) => request(run, 'e1@ordered', 1, () => ({ deliveryId: 'other', idempotencyKey: 'other' })),
    'stranger',
    /requests of other/,
  ],
  [
    'a second id for the same delivery',
    (run) => ({ ...run, deliveries: [...run.deliveries, { ...delivery('e1@ordered'), id: 'second' }] }),
    'identity',
    /several delivery ids/,
  ],
  [
    'another idempotency key',
    (run) => request(run, 'e1@ordered', 1, () => ({ idempotencyKey: 'x' })),
    'identity',
    /Idempotency-Key "x"/,
  ],
  [
    'a delivery is settled twice',
    (run) => ({ ...run, attempts: [...run.attempts, logged('e1@ordered', 2, 200, 'done')] }),
    'settlement',
    /settled 2 times/,
  ],
  [
    'a dead letter is missing',
    (run) => ({ ...run, dead: without(run.dead, ({ deliveryId }) => deliveryId === 'e1@broken') }),
    'settlement',
    /0 dead letters, 1 expected/,
  ],
  [
    'a dead letter of a delivered event',
    (run) => ({
      ...run,
      dead: [...run.dead, { deliveryId: 'e1@ordered', subscriptionId: 'ordered', reason: 'exhausted', attempts: 1 }],
    }),
    'settlement',
    /1 dead letters, 0 expected/,
  ],
  [
    'an attempt number is left out at the receiver',
    (run) => request(run, 'e2@ordered', 2, () => ({ attempt: 3 })),
    'attempts',
    /attempt 3 after 1/,
  ],
  [
    'attempt numbers fall',
    (run) => ({
      ...run,
      attempts: run.attempts.map((a) => (a.deliveryId === 'e2@ordered' ? { ...a, attempt: 3 - a.attempt } : a)),
    }),
    'attempts',
    /numbered 2, 1/,
  ],
  [
    'a logged attempt was never received',
    (run) => ({ ...run, requests: without(run.requests, ({ deliveryId }) => deliveryId === 'e1@ordered') }),
    'receipt',
    /logged, but was not received/,
  ],
  [
    'a received attempt was never logged',
    (run) => ({ ...run, attempts: without(run.attempts, (a) => a.deliveryId === 'e1@broken') }),
    'receipt',
    /received, but is not logged/,
  ],
  [
    'the log says delivered, the receiver said 500',
    (run) => request(run, 'e1@ordered', 1, () => ({ status: 500 })),
    'receipt',
    /never answered 2xx/,
  ],
  ['another body', (run) => request(run, 'e1@ordered', 1, () => ({ digest: 'x' })), 'receipt', /another body/],
  ['another path', (run) => request(run, 'e1@ordered', 1, () => ({ path: '/plain' })), 'receipt', /came to \/plain/],
  [
    'a signature does not verify',
    (run) => request(run, 'e3@ordered', 1, () => ({ signatureProblem: 'no signature matches' })),
    'signature',
    /no signature matches/,
  ],
  ['a retry stands in no tier', (run) => ({ ...run, tierMoves: [] }), 'tier', /stands in no tier/],
  [
    'the tier has another due time than the log',
    (run) => ({ ...run, tierMoves: run.tierMoves.map((move) => ({ ...move, dueMs: 2400 })) }),
    'tier',
    /differ in the due time/,
  ],
  [
    'a retry is a millisecond early',
    (run) => request(run, 'e2@ordered', 2, () => ({ atMs: 2499 })),
    'early',
    /came 1 ms early/,
  ],
  [
    'the next of a key comes while the one before is open',
    (run) => request(run, 'e1@ordered', 1, (r) => ({ newest: r.number + 1 })),
    'order',
    /event e2 .* before the last answer for e1/,
  ],
  [
    'the next of a key overtakes one that waits for its retry',
    (run) => {
      const swap = new Map([[3, 4], [4, 3]]) // biome-ignore format: two numbers change places
      return {
        ...run,
        requests: run.requests.map((r) => ({
          ...r,
          number: swap.get(r.number) ?? r.number,
          newest: swap.get(r.newest) ?? r.newest,
        })),
      }
    },
    'order',
    /event e3 .* before the last answer for e2/,
  ],
  [
    'the broken endpoint gets its deliveries in another order',
    (run) => {
      const order = new Map([[6, 7], [7, 6]]) // biome-ignore format: two numbers change places
      return {
        ...run,
        requests: run.requests.map((r) => ({
          ...r,
          number: order.get(r.number) ?? r.number,
          newest: order.get(r.newest) ?? r.newest,
        })),
      }
    },
    'order',
    /for broken/,
  ],
  [
    'a rejected delivery is dead for another reason',
    (run) => ({ ...run, dead: run.dead.map((d) => (d.reason === 'rejected' ? { ...d, reason: 'exhausted' } : d)) }),
    'fate',
    /exhausted.* instead of dead after the first answer/,
  ],
  [
    'a delivery that could have been made is given up too early',
    (run) => ({
      ...run,
      attempts: run.attempts.map((a) => (a.deliveryId === 'e1@ordered' ? logged('e1@ordered', 1, 503, 'dead') : a)),
      dead: [...run.dead, { deliveryId: 'e1@ordered', subscriptionId: 'ordered', reason: 'exhausted', attempts: 1 }],
      requests: run.requests.map((r) => (r.deliveryId === 'e1@ordered' ? { ...r, status: 503 } : r)),
    }),
    'fate',
    /instead of delivered/,
  ],
  [
    'the endpoint that is gone stays active',
    (run) => ({ ...run, subscriptions: run.subscriptions.map((s) => ({ ...s, status: 'active' })) }),
    'fate',
    /answered 410, but is active/,
  ],
  [
    'a good subscription is disabled',
    (run) => ({ ...run, subscriptions: run.subscriptions.map((s) => ({ ...s, status: 'disabled' })) }),
    'fate',
    /subscription ordered is disabled/,
  ],
  [
    'an event before the disabling was not matched',
    (run) => ({
      ...run,
      deliveries: [...without(run.deliveries, ({ id }) => id === 'e2@gone'), { ...delivery('e3@gone'), done: false }],
    }),
    'fate',
    /e2 was not matched with gone, but e3 after it was/,
  ],
]

test.each(tampered)('found: %s', (_what, tamper, rule, text) => {
  const findings = findingsOf(tamper(goodRun()))
  expect(findings).toContainEqual({ rule, text: expect.stringMatching(text) })
})

test('a request whose attempt got no answer may come at any time: the next one was right to go ahead', () => {
  const run = goodRun()
  const attempts = run.attempts.map((a) => {
    const timedOut = a.deliveryId === 'e2@ordered' && a.attempt === 1
    return timedOut ? { ...a, status: null, errorClass: 'timeout' as const } : a
  })
  const late = run.requests.map((r) =>
    r.deliveryId === 'e2@ordered' && r.attempt === 1 ? { ...r, number: 20, newest: 20 } : r,
  )
  expect(findingsOf({ ...run, attempts, requests: late })).toEqual([])
  const never = run.requests.filter((r) => r.deliveryId !== 'e2@ordered' || r.attempt !== 1)
  expect(findingsOf({ ...run, attempts, requests: never })).toEqual([])
})

test('what waits in a tier for a disabled subscription is held, not lost', () => {
  const run = goodRun()
  const attempts = [...run.attempts, { ...logged('e2@gone', 1, 503, 'scheduled' as const, 9000), status: null }]
  const deliveries = run.deliveries.map((d) => ({ ...d, done: true }))
  const move = { tier: 'retry-500ms', deliveryId: 'e2@gone', attempts: 1, dueMs: 9000 }
  expect(findingsOf({ ...run, attempts, deliveries, tierMoves: [...run.tierMoves, { ...move, done: false }] })).toEqual(
    [],
  )
  const rules = findingsOf({ ...run, attempts, deliveries, tierMoves: [...run.tierMoves, { ...move, done: true }] })
  expect(rules.map(({ rule }) => rule)).toContain('lost')
})

test('a repeat of an attempt is no finding, but is counted', async () => {
  const run = goodRun()
  const last = run.requests.at(-1) as Request
  const again = { ...last, number: last.number + 1, newest: last.number + 1 }
  const repeated = { ...run, requests: [...run.requests, again] }
  const { summarize } = await import('../../src/demo/summary.ts')
  const cases = collectCases(repeated)
  const findings = check(repeated, cases)
  const summary = summarize(repeated, cases, findings, { id: 'r', seconds: 1, tiers: [], aboutOf: () => '' })
  expect(findings).toEqual([])
  expect(summary.total.duplicates).toBe(1)
})
