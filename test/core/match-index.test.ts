import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MatchIndex, patternMatches } from '../../src/core/match-index.ts'
import type { Subscription, SubscriptionStatus } from '../../src/core/subscription.ts'

function subscription(
  id: string,
  types: string[],
  tenant = 'default',
  status: SubscriptionStatus = 'active',
): Subscription {
  return {
    v: 1,
    id,
    tenant,
    url: 'https://example.com/',
    types,
    ordering: 'key',
    status,
    secrets: [{ ref: 'env:A' }],
    createdAtMs: 0,
    updatedAtMs: 0,
  }
}

describe('patterns', () => {
  test.each([
    ['order.created', 'order.created', true],
    ['order.created', 'order.created.v2', false],
    ['order.*', 'order.created', true],
    ['order.*', 'order.created.v2', true],
    ['order.created.*', 'order.created.v2', true],
    ['order.*', 'order', false],
    ['order.*', 'orders.created', false],
    ['order.*', 'shop.order.created', false],
    ['*', 'anything', true],
    ['Order.*', 'order.created', false],
  ])('%s and type %s: %s', (pattern, type, wanted) => {
    const index = new MatchIndex()
    index.set(subscription('s', [pattern]))
    expect(index.match('default', type).length === 1).toBe(wanted)
    expect(patternMatches(pattern, type)).toBe(wanted)
  })
})

test('a subscription that matches by several patterns comes once; all come sorted by id', () => {
  const index = new MatchIndex()
  for (const id of ['b', 'B', 'a2', 'a10', 'a']) index.set(subscription(id, ['*', 'x.*', 'x.y']))
  expect(index.match('default', 'x.y').map((s) => s.id)).toEqual(['B', 'a', 'a10', 'a2', 'b'])
})

test('paused and disabled subscriptions match: nothing produced meanwhile is lost unseen', () => {
  const index = new MatchIndex()
  for (const status of ['active', 'paused', 'disabled'] as const)
    index.set(subscription(status, ['*'], 'default', status))
  expect(index.match('default', 'x').map((s) => s.id)).toEqual(['active', 'disabled', 'paused'])
  expect(index.get('disabled')?.status).toBe('disabled')
})

test('types and tenants named like properties of objects are only names', () => {
  const index = new MatchIndex()
  index.set(subscription('s', ['constructor.*'], '__proto__'))
  expect(index.match('__proto__', 'constructor.name')).toHaveLength(1)
  expect(index.match('constructor', 'name')).toEqual([])
})

test('after any changes the index gives what a scan of all subscriptions gives', () => {
  const segment = fc.constantFrom('a', 'b', 'order')
  const type = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('.'))
  const pattern = fc.oneof(
    type,
    type.map((t) => `${t}.*`),
    fc.constant('*'),
  )
  const tenant = fc.constantFrom('t1', 't2')
  const change = fc.record({
    id: fc.constantFrom('s1', 's2', 's3', 's4'),
    remove: fc.boolean(),
    types: fc.uniqueArray(pattern, { minLength: 1, maxLength: 3 }),
    tenant,
    status: fc.constantFrom('active' as const, 'paused' as const, 'disabled' as const),
  })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), fc.array(fc.tuple(tenant, type)), (changes, events) => {
      const index = new MatchIndex()
      const all = new Map<string, Subscription>()
      for (const c of changes) {
        if (c.remove) {
          expect(index.remove(c.id)).toBe(all.delete(c.id))
        } else {
          const s = subscription(c.id, c.types, c.tenant, c.status)
          index.set(s)
          all.set(s.id, s)
        }
      }
      expect(index.size).toBe(all.size)
      for (const [at, name] of events) {
        const scan = [...all.values()].filter((s) => s.tenant === at && s.types.some((p) => patternMatches(p, name)))
        expect(index.match(at, name).map((s) => s.id)).toEqual(scan.map((s) => s.id).toSorted())
      }
    }),
  )
})
