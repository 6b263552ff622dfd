import { describe, expect, test } from 'vitest'
import { guardPolicy } from '../../src/core/guard-policy.ts'
import { problemText } from '../../src/core/result.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { decodeSubscription } from '../../src/schema/decode.ts'
import { validateSubscriptionInput } from '../../src/schema/subscription-input.ts'
import * as samples from './samples.ts'

const context = { nowMs: 1000, id: 'sub_new' }
const least = { url: 'https://example.com/hook', secrets: [{ ref: 'env:HOOK_SECRET' }] }

test('url and secrets are enough; the rest gets its default', () => {
  const result = validateSubscriptionInput(least, context)
  expect(result).toEqual({
    ok: true,
    value: {
      v: 1,
      id: 'sub_new',
      tenant: 'default',
      ...least,
      types: ['*'],
      ordering: 'key',
      status: 'active',
      createdAtMs: 1000,
      updatedAtMs: 1000,
    },
  })
})

test('what was accepted is a readable record', () => {
  for (const input of [least, ...samples.subscriptions]) {
    const result = validateSubscriptionInput(input, context)
    if (!result.ok) throw new Error(result.problems.map(problemText).join('\n'))
    expect(decodeSubscription({ value: Buffer.from(JSON.stringify(result.value)) })).toEqual(result)
  }
})

test('an update keeps the creation time of what stands there', () => {
  const [existing] = samples.subscriptions
  const result = validateSubscriptionInput({ ...least, createdAtMs: 5 }, { ...context, existing: existing as never })
  expect(result).toMatchObject({ value: { createdAtMs: existing?.createdAtMs, updatedAtMs: 1000 } })
})

test('all problems are told at once, with a remedy each', () => {
  const result = validateSubscriptionInput(
    {
      url: 'ftp://a.example/x',
      type: ['x'],
      types: ['a b', 'order.*.x', ''],
      secrets: [
        { ref: 'whsec_hunter2', from: 3 },
        { ref: 'env:A', fromMs: 5, untilMs: 5 },
      ],
      headers: { 'Webhook-Id': 'x' },
      retry: { maxAttempts: 0, baseMs: 10, capMs: 5 },
      status: 'on',
      maxInFlight: 1.5,
    },
    context,
  )
  if (result.ok) throw new Error('must be refused')
  expect(result.problems.map((p) => p.field).toSorted()).toEqual([
    'headers',
    'maxInFlight',
    'retry.capMs',
    'retry.maxAttempts',
    'secrets[0].from',
    'secrets[0].ref',
    'secrets[1].untilMs',
    'status',
    'type',
    'types[0]',
    'types[1]',
    'types[2]',
    'url',
  ])
  const text = result.problems.map(problemText).join('\n')
  expect(text).not.toContain('hunter2')
  expect(text).toContain('type: is not a known key; did you mean types?')
  expect(text).toContain('secrets[0].from: is not a known key; did you mean fromMs?')
  expect(result.problems.every((p) => p.remedy !== '')).toBe(true)
})

describe('refused with a problem at', () => {
  test.each([
    ['value', null],
    ['value', [least]],
    ['value', 'https://example.com'],
    ['url', { secrets: least.secrets }],
    ['secrets', { url: least.url }],
    ['secrets', { ...least, secrets: [] }],
    ['url', { ...least, url: 'http://example.com/' }],
    ['url', { ...least, url: 'https://user:hunter2@example.com/' }],
    ['url', { ...least, url: 'https://127.0.0.1/' }],
    ['url', { ...least, url: 7 }],
    ['id', { ...least, id: 'a b' }],
    ['v', { ...least, v: 2 }],
    ['types', { ...least, types: ['a', 'a'] }],
    ['headers', { ...least, headers: { a: 'x\r\ny: z' } }],
    ['headers', { ...least, headers: ['a'] }],
    ['__proto__', JSON.parse('{"url":"https://example.com/","secrets":[{"ref":"env:A"}],"__proto__":{"v":1}}')],
  ])('%s: %j', (field, input) => {
    const result = validateSubscriptionInput(input, context)
    if (result.ok) throw new Error('must be refused')
    expect(result.problems.map((p) => p.field)).toEqual([field])
    expect(JSON.stringify(result.problems)).not.toContain('hunter2')
  })
})

test("a deadline of its own lies within the operator's; one that stands there already is let be", () => {
  const base = { url: 'https://example.com/hook', secrets: [{ ref: 'env:A' }] }
  const read = (timeoutMs: number, existing?: Subscription) => {
    const context = { nowMs: 1, id: 'a', maxTimeoutMs: 13_000, ...(existing === undefined ? {} : { existing }) }
    return validateSubscriptionInput({ ...base, timeoutMs }, context)
  }
  expect(read(13_000)).toMatchObject({ ok: true, value: { timeoutMs: 13_000 } })
  expect(read(13_001)).toMatchObject({
    ok: false,
    problems: [{ field: 'timeoutMs', value: '13001', message: 'is above http.totalTimeout (13000)' }],
  })
  const before = validateSubscriptionInput({ ...base, timeoutMs: 20_000 }, { nowMs: 1, id: 'a' })
  if (!before.ok) throw new Error('it was not read')
  expect(read(20_000, before.value)).toMatchObject({ ok: true })
})

test("what URLs may point at is the operator's to say", () => {
  const guard = guardPolicy({ allowHttp: true, allowPrivate: ['127.0.0.0/8'] })
  if (!guard.ok) throw new Error(guard.reason)
  const input = { ...least, url: 'http://127.0.0.1:8080/' }
  expect(validateSubscriptionInput(input, { ...context, guard: guard.value }).ok).toBe(true)
})
