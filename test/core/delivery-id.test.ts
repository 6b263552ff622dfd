import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deliveryId, type EventIdentity } from '../../src/core/delivery-id.ts'
import { webhookIdProblem } from '../../src/core/signature.ts'

const identity: fc.Arbitrary<EventIdentity> = fc.oneof(
  fc.record({ t: fc.constant('cloudevent' as const), source: fc.string(), id: fc.string() }),
  fc.record({ t: fc.constant('given' as const), topic: fc.string(), id: fc.string() }),
  fc.record({ t: fc.constant('position' as const), topic: fc.string(), partition: fc.nat(), offset: fc.nat() }),
)

test('an id is a webhook-id that may be signed, and the same every time', () => {
  fc.assert(
    fc.property(identity, fc.string(), (event, subscription) => {
      const id = deliveryId(event, subscription)
      expect(id).toMatch(/^msg_[A-Za-z0-9_-]{43}$/)
      expect(webhookIdProblem(id)).toBeNull()
      expect(deliveryId({ ...event }, subscription)).toBe(id)
    }),
  )
})

test('different events or subscriptions have different ids', () => {
  fc.assert(
    fc.property(identity, fc.string(), identity, fc.string(), (a, s, b, t) => {
      const same = s === t && JSON.stringify(a) === JSON.stringify(b)
      expect(deliveryId(a, s) === deliveryId(b, t)).toBe(same)
    }),
  )
})

test('moving a border between two parts gives another id', () => {
  const ids = [
    deliveryId({ t: 'cloudevent', source: 'ab', id: 'c' }, 'd'),
    deliveryId({ t: 'cloudevent', source: 'a', id: 'bc' }, 'd'),
    deliveryId({ t: 'cloudevent', source: 'ab', id: '' }, 'cd'),
    deliveryId({ t: 'given', topic: 'ab', id: 'c' }, 'd'),
    deliveryId({ t: 'position', topic: 't', partition: 1, offset: 23 }, 'd'),
    deliveryId({ t: 'position', topic: 't', partition: 12, offset: 3 }, 'd'),
    deliveryId({ t: 'given', topic: 't', id: '1/23' }, 'd'),
  ]
  expect(new Set(ids).size).toBe(ids.length)
})

test('the id of a known event never changes: receivers deduplicate by it across releases', () => {
  expect(deliveryId({ t: 'cloudevent', source: '/shop', id: 'A-1' }, 'sub_1')).toBe(
    'msg_kZGdq6pAC2TRAMTUqso1PlyaKuJifKhEy4-VT-OvZvY',
  )
  expect(deliveryId({ t: 'position', topic: 'webhooks.events', partition: 3, offset: 127 }, 'sub_1')).toBe(
    'msg_H42l3dKASmY00zjOAARp6nCGIaKZbI4X4aNA3JZbvy8',
  )
})
