import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DeliveryRow } from '../../src/core/state-row.ts'
import { flatAttempt, flatHealth, healthRow } from '../../src/state/flat-attempt.ts'
import { deliveryRow, flatDelivery } from '../../src/state/flat-delivery.ts'
import { attemptColumns, deliveryColumns, healthColumns } from '../../src/state/tables.ts'

const text = fc.string({ maxLength: 8 })
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null })
const sending = fc.record({
  origin: text,
  n: fc.nat(9),
  rank: fc.nat(5),
  timeMs: fc.nat(),
  topic: text,
  partition: fc.nat(11),
  offset: fc.nat(),
  status: fc.constantFrom(
    'queued' as const,
    'scheduled' as const,
    'parked' as const,
    'delivered' as const,
    'dead' as const,
  ),
  dueMs: maybe(fc.nat()),
  error: maybe(text),
  deadReason: maybe(text),
  posts: fc.nat(9),
  postN: fc.nat(9),
  postStatus: maybe(fc.nat(599)),
})
const row: fc.Arbitrary<DeliveryRow> = fc.record({
  id: text,
  tenant: text,
  subscriptionId: text,
  eventId: text,
  eventType: text,
  created: fc.record({ ms: fc.nat(), from: fc.nat(2) }),
  event: maybe(
    fc.record({
      timeMs: fc.nat(),
      orderingKey: maybe(text),
      contentType: text,
      bodyBytes: fc.nat(),
      traceparent: maybe(text),
    }),
  ),
  sendings: fc
    .uniqueArray(sending, { selector: ({ origin }) => origin, minLength: 1, maxLength: 3 })
    .map((all) => all.sort((a, b) => (a.origin < b.origin ? -1 : 1))),
})

test('a delivery comes back from its columns as it was', () => {
  fc.assert(
    fc.property(row, fc.nat(), (given, no) => {
      expect(deliveryRow(flatDelivery(no, given))).toEqual(given)
    }),
  )
})

test('flat rows have their properties in the order of the columns: SQLite gets them by place', () => {
  const one = fc.sample(row, 1)[0] as DeliveryRow
  expect(Object.keys(flatDelivery(1, one))).toEqual([...deliveryColumns])
  const health = {
    subscriptionId: 's',
    lane: 1,
    tenant: 't',
    succeeded: 1,
    failed: 2,
    lastSuccessMs: 3,
    lastSuccessOffset: 4,
    lastFailureMs: 5,
    lastFailureOffset: 6,
    lastError: '503',
    consecutive: 7,
    failingSinceMs: 8,
  }
  expect(Object.keys(flatHealth(health))).toEqual([...healthColumns])
  expect(healthRow(flatHealth(health))).toEqual(health)
  const attempt = {
    v: 1 as const,
    deliveryId: 'd',
    subscriptionId: 's',
    tenant: 't',
    eventId: 'e',
    eventType: 'x',
    attempt: 1,
    startedAtMs: 1,
    durationMs: 1.4,
    status: 200,
    error: null,
    errorClass: null,
    outcome: 'delivered' as const,
    settlement: 'done' as const,
    dueMs: null,
    excerpt: '',
    url: '',
    lane: 0,
    origin: 'o',
  }
  const flat = flatAttempt({ lane: 0, offset: 1, loggedMs: 2, delivery: 3, attempt })
  expect(Object.keys(flat)).toEqual([...attemptColumns])
})
