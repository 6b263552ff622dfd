import { expect, test } from 'vitest'
import { failedAgain, verdictOn } from '../../src/core/failing.ts'
import type { FailingMark } from '../../src/core/lane-state.ts'
import type { Subscription } from '../../src/core/subscription.ts'

const hour = 3_600_000
const day = 24 * hour
const policy = { disableAfterMs: 5 * day, failingAfterMs: hour }
const base: Subscription = {
  v: 1,
  id: 's',
  tenant: 't',
  url: 'https://example.com/',
  types: ['*'],
  ordering: 'key',
  status: 'active',
  secrets: [],
  createdAtMs: 0,
  updatedAtMs: 0,
}

/** Failures at these hours, one row or several: what each means. */
function steps(hours: readonly number[], subscription: Subscription = base): string[] {
  let known: { mark: FailingMark; writtenMs: number } | null = null
  return hours.map((at) => {
    const nowMs = day + at * hour
    const { mark, write, step } = failedAgain(known, subscription, nowMs, policy)
    known = { mark, writtenMs: write ? nowMs : (known?.writtenMs ?? nowMs) }
    return step
  })
}

const often = Array.from({ length: 62 }, (_, i) => i * 2)

test('it is told once after failingAfter, and disabled after disableAfter', () => {
  const found = steps(often)
  expect(found[0]).toBe('none')
  expect(found[1]).toBe('failing')
  expect(found.filter((step) => step === 'failing')).toHaveLength(1)
  expect(found.indexOf('disable')).toBe(60)
})

test('one failure, silence, and another say nothing of the days in between', () => {
  expect(steps([0, 121])).toEqual(['none', 'none'])
  expect(steps([0, 1, 30, 31, 60, 61, 90, 91, 121, 122])).not.toContain('disable')
})

test("a subscription's own time goes first; 0 is never", () => {
  expect(steps([0, 1, 2, 3], { ...base, disableAfterMs: 2 * hour })).toEqual(['none', 'failing', 'disable', 'disable'])
  expect(steps(often, { ...base, disableAfterMs: 0 })).not.toContain('disable')
})

test('a changed subscription begins anew', () => {
  const known = { mark: mark({ sinceMs: 0, lastMs: 6 * day }), writtenMs: 6 * day }
  expect(failedAgain(known, base, 6 * day + 1, policy).step).toBe('disable')
  const changed = failedAgain(known, { ...base, updatedAtMs: 5 * day }, 6 * day + 1, policy)
  expect(changed).toMatchObject({ step: 'none', write: true, mark: { sinceMs: 6 * day + 1, failures: 1, told: false } })
})

test('what a new owner must know is written down, and no more', () => {
  const known = { mark: mark({ sinceMs: day, lastMs: day, told: true }), writtenMs: day }
  expect(failedAgain(known, base, day + hour, policy).write).toBe(false)
  expect(failedAgain(known, base, day + 3 * hour, policy).write).toBe(true)
  expect(failedAgain(null, base, day, policy).write).toBe(true)
})

test('only what the endpoint is to blame for counts', () => {
  const failure = (c: 'timeout' | 'secret' | 'body' | 'local' | 'dns') =>
    ({ t: 'failure', class: c, detail: '', durationMs: 0 }) as const
  const retryable = { t: 'retryable', error: '', status: null, retryAfterMs: null } as const
  expect(verdictOn(retryable, failure('timeout'))).toBe('failed')
  expect(verdictOn(retryable, failure('dns'))).toBe('failed')
  for (const c of ['secret', 'body', 'local'] as const) expect(verdictOn(retryable, failure(c))).toBe('unknown')
  expect(verdictOn({ t: 'interrupted', error: '' }, failure('timeout'))).toBe('unknown')
  expect(verdictOn({ t: 'gone', status: 410 }, failure('timeout'))).toBe('unknown')
  expect(verdictOn({ t: 'delivered', status: 200 }, failure('timeout'))).toBe('ok')
})

function mark(of: Partial<FailingMark>): FailingMark {
  return { v: 1, kind: 'failing', subscriptionId: 's', sinceMs: 0, lastMs: 0, failures: 9, told: false, ...of }
}
