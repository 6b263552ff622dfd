import { describe, expect, test } from 'vitest'
import { parseSubscriptionFile } from '../../src/cli/subscription-file.ts'
import { planText } from '../../src/cli/subscription-view.ts'
import { strictPolicy } from '../../src/core/guard-policy.ts'
import { fail, ok, type Result } from '../../src/core/result.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { differences, planSubscriptions } from '../../src/operations/subscription-plan.ts'
import { freshId, rotated } from '../../src/operations/subscription-secret.ts'
import { visiblePlan } from '../../src/operations/subscription-visible.ts'

const base: Subscription = {
  v: 1,
  id: 'a',
  tenant: 'default',
  url: 'https://example.com/a',
  types: ['*'],
  ordering: 'key',
  status: 'active',
  secrets: [{ ref: 'env:A' }],
  createdAtMs: 1,
  updatedAtMs: 2,
}

function plan(
  wanted: readonly unknown[],
  entries: Record<string, Result<Subscription>>,
  prune: { tenant: string | null } | null = null,
) {
  return planSubscriptions(wanted, new Map(Object.entries(entries)), { nowMs: 100, guard: strictPolicy, prune })
}

const minimal = { id: 'a', url: 'https://example.com/a' }

describe('plan', () => {
  test('what is as it should be is unchanged, whatever its times', () => {
    expect(plan([minimal], { a: ok(base) }).items.map(({ action }) => action)).toEqual(['unchanged'])
  })

  test('a new one is created with the defaults, a known one keeps when it was created', () => {
    const created = plan([{ ...minimal, secrets: [{ ref: 'env:A' }] }], {}).items[0]
    expect(created).toMatchObject({
      action: 'create',
      subscription: { createdAtMs: 100, updatedAtMs: 100, ordering: 'key' },
    })
    const updated = plan([{ ...minimal, ordering: 'none' }], { a: ok(base) }).items[0]
    expect(updated).toMatchObject({ action: 'update', subscription: { createdAtMs: 1, updatedAtMs: 100 } })
  })

  test('left out: status with its reason, and secrets, stay; everything else goes back to its default', () => {
    const existing: Subscription = { ...base, status: 'disabled', statusReason: 'answered 410', maxInFlight: 3 }
    const [item] = plan([minimal], { a: ok(existing) }).items
    expect(item?.subscription).toMatchObject({
      status: 'disabled',
      statusReason: 'answered 410',
      secrets: [{ ref: 'env:A' }],
    })
    expect(item?.changes).toEqual([{ field: 'maxInFlight', before: 3, after: undefined }])
    const [enabled] = plan([{ ...minimal, status: 'active' }], { a: ok(existing) }).items
    expect(enabled?.subscription?.statusReason).toBeUndefined()
  })

  test('prune removes what the file does not name, of one tenant if asked; never what can not be read', () => {
    const entries = {
      a: ok(base),
      b: ok({ ...base, id: 'b', tenant: 'acme' }),
      c: ok({ ...base, id: 'c' }),
      d: fail('?'),
    }
    const removed = (prune: { tenant: string | null } | null) =>
      plan([minimal], entries, prune).items.flatMap(({ id, action }) => (action === 'remove' ? [id] : []))
    expect(removed(null)).toEqual([])
    expect(removed({ tenant: null })).toEqual(['b', 'c'])
    expect(removed({ tenant: 'acme' })).toEqual(['b'])
  })

  test('all problems at once, each with its subscription: no id, twice, bad fields, kafka:new, a newer version', () => {
    const wanted = [
      { url: 'x' },
      minimal,
      minimal,
      { id: 'b', url: 'ftp://x', secrets: [{ ref: 'kafka:new' }] },
      { ...minimal, id: 'n' },
    ]
    const { problems } = plan(wanted, { a: ok(base), n: fail('v (9) is unknown here', 'unknown-version') })
    expect(problems).toEqual([
      expect.stringMatching(/^item 1: id: is missing/),
      expect.stringMatching(/^a: id: stands there twice/),
      expect.stringMatching(/^b: secrets\[0\]\.ref: kafka:new makes no sense in a file/),
      expect.stringMatching(/^b: url \(.*the URL must begin with https/),
      'n: v (9) is unknown here',
    ])
  })

  test('what was printed without --reveal is not written back as stars', () => {
    const masked = { ...minimal, url: 'https://example.com/a?***', headers: { 'X-Key': '***', 'X-Other': 'b' } }
    expect(plan([masked], { a: ok(base) }).problems).toEqual([
      expect.stringMatching(/^a: headers\.X-Key: was hidden when it was printed/),
      expect.stringMatching(/^a: url: was hidden when it was printed/),
    ])
  })

  test('a damaged record is replaced', () => {
    const { items, problems } = plan([{ ...minimal, secrets: [{ ref: 'env:A' }] }], { a: fail('no JSON') })
    expect(problems).toEqual([])
    expect(items[0]?.action).toBe('update')
  })

  test.each<[string, Partial<Subscription>, object[]]>([
    ['times are no difference', { createdAtMs: 9, updatedAtMs: 9 }, []],
    ['a list as a whole', { types: ['a', 'b'] }, [{ field: 'types', before: ['*'], after: ['a', 'b'] }]],
    ['a field that was not there', { timeoutMs: 5 }, [{ field: 'timeoutMs', before: undefined, after: 5 }]],
    [
      'sorted by field',
      { url: 'https://b', ordering: 'none' },
      [
        { field: 'ordering', before: 'key', after: 'none' },
        { field: 'url', before: base.url, after: 'https://b' },
      ],
    ],
  ])('differences: %s', (_name, change, expected) => {
    expect(differences(base, { ...base, ...change })).toEqual(expected)
  })

  test('maps are compared key by key', () => {
    const [before, after] = [
      { ...base, headers: { a: '1', b: '2' } },
      { ...base, headers: { a: '1', c: '3' } },
    ]
    expect(differences(before, after).map(({ field }) => field)).toEqual(['headers.b', 'headers.c'])
  })

  test('the printed plan shows no header values and no URL queries, but that they changed', () => {
    const before = { ...base, url: 'https://example.com/a?token=old', headers: { 'X-Key': 'old' } }
    const wanted = { ...minimal, url: 'https://example.com/a?token=new', headers: { 'X-Key': 'new' } }
    expect(planText(visiblePlan(plan([wanted], { a: ok(before) }), false, []))).toBe(
      [
        '~ update a',
        '    headers.X-Key: *** → *** (changed)',
        '    url: https://example.com/a?*** → https://example.com/a?*** (changed)',
        '1 update',
      ].join('\n'),
    )
  })
})

describe('files', () => {
  const [a, b] = [{ id: 'a' }, { id: 'b' }]
  test.each([
    ['one YAML document', 'id: a\n', [a]],
    ['YAML documents', 'id: a\n---\nid: b\n', [a, b]],
    ['a YAML list', '- id: a\n- id: b\n', [a, b]],
    ['under subscriptions', 'subscriptions:\n  - id: a\n', [a]],
    ['JSON', '{"subscriptions":[{"id":"a"},{"id":"b"}]}', [a, b]],
    ['a JSON list', '[{"id":"a"}]', [a]],
    ['NDJSON', '{"id":"a"}\n{"id":"b"}\n', [a, b]],
  ])('%s', (_name, text, expected) => {
    expect(parseSubscriptionFile(text, 'f')).toEqual(expected)
  })

  test.each([
    ['nothing', '', 'f holds no subscriptions'],
    ['an empty list, which would prune everything', 'subscriptions: []', 'f holds no subscriptions'],
    ['broken YAML', 'a: [', 'f is no YAML or JSON'],
    ['a broken line', '{"id":"a"}\n{"id":b}\n', 'f line 2 is no JSON'],
  ])('refused: %s', (_name, text, message) => {
    expect(() => parseSubscriptionFile(text, 'f')).toThrow(message)
  })
})

describe('secrets', () => {
  test.each<[string, Subscription['secrets'], number, object[]]>([
    [
      'the old one signs on beside the new one',
      [{ ref: 'env:A' }],
      50,
      [{ ref: 'env:N' }, { ref: 'env:A', untilMs: 150 }],
    ],
    ['no overlap: the old one is gone', [{ ref: 'env:A' }], 0, [{ ref: 'env:N' }]],
    ['an earlier end stays', [{ ref: 'env:A', untilMs: 120 }], 50, [{ ref: 'env:N' }, { ref: 'env:A', untilMs: 120 }]],
    ['what has run out is dropped', [{ ref: 'env:A', untilMs: 100 }], 50, [{ ref: 'env:N' }]],
    ['what would only begin later is dropped', [{ ref: 'env:A', fromMs: 500 }], 50, [{ ref: 'env:N' }]],
    [
      'the new one was there already: it moves to the front',
      [{ ref: 'env:A' }, { ref: 'env:N', untilMs: 110 }],
      50,
      [{ ref: 'env:N' }, { ref: 'env:A', untilMs: 150 }],
    ],
  ])('rotation: %s', (_name, before, overlapMs, expected) => {
    expect(rotated(before, 'env:N', 100, overlapMs)).toEqual(expected)
  })

  test('never more than the ten a subscription may have', () => {
    const before = Array.from({ length: 10 }, (_, i) => ({ ref: `env:A${i}` }))
    expect(rotated(before, 'env:N', 0, 10)).toHaveLength(10)
  })

  test.each([
    ['a', [], 'a.1'],
    ['a', ['a.1', 'a.2', 'b.3'], 'a.3'],
    ['team:a', [], 'team-a.1'],
    ['x'.repeat(100), [], `${'x'.repeat(90)}.1`],
  ])('id of a fresh secret of %s beside %j: %s', (id, taken, expected) => {
    expect(freshId(id, new Set(taken))).toBe(expected)
  })
})
