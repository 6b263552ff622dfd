import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Control, controlKey } from '../../src/core/control.ts'
import type { LineState } from '../../src/core/lane-state.ts'
import { Orders } from '../../src/core/orders.ts'

const at = 1_000_000

function order(kind: Control['kind'], target: string, what: Control['order'], more: Partial<Control> = {}): Control {
  return { v: 1, kind, target, order: what, by: 'ada', atMs: at, ...more }
}

function holding(...orders: Control[]): Orders {
  const held = new Orders()
  for (const one of orders) held.apply(controlKey(one), one)
  return held
}

const stopped: LineState = {
  v: 1,
  kind: 'line',
  line: 's k a',
  state: 'stopped',
  head: 'h1',
  next: 0,
  count: 3,
  since: 0,
  sinceMs: at - 10,
}

test.each([
  { what: 'none', given: [], rate: null },
  { what: 'paused', given: [order('tier', 't', 'pause')], rate: 0 },
  { what: 'throttled', given: [order('tier', 't', 'throttle', { perSecond: 0.5 })], rate: 0.5 },
  { what: 'resumed', given: [order('tier', 't', 'pause'), order('tier', 't', 'resume')], rate: null },
  {
    what: 'throttled after a pause',
    given: [order('tier', 't', 'pause'), order('tier', 't', 'throttle', { perSecond: 2 })],
    rate: 2,
  },
  { what: 'another tier paused', given: [order('tier', 'u', 'pause')], rate: null },
  { what: 'a subscription of that name paused', given: [order('subscription', 't', 'pause')], rate: null },
  { what: 'paused until now', given: [order('tier', 't', 'pause', { untilMs: at })], rate: null },
  { what: 'paused until later', given: [order('tier', 't', 'pause', { untilMs: at + 1 })], rate: 0 },
])('tier $what: $rate per second', ({ given, rate }) => {
  expect(holding(...given).tierRate('t', at)).toBe(rate)
})

test('a subscription is paused from the pause to its end, resume or tombstone', () => {
  const orders = holding(order('subscription', 's', 'pause', { untilMs: at + 5 }))
  expect([at, at + 4, at + 5].map((now) => orders.subscriptionPaused('s', now))).toEqual([true, true, false])
  expect(orders.subscriptionPaused('other', at)).toBe(false)
  expect(orders.apply('subscription:s', null)).toBe(true)
  expect(orders.subscriptionPaused('s', at)).toBe(false)
  expect(orders.apply('subscription:s', null)).toBe(false)
})

describe('verdicts', () => {
  const delivery = { id: 'd', eventTimeMs: at - 1 }
  test.each([
    { what: 'no order', given: [], verdict: null },
    { what: 'cancelled', given: [order('delivery', 'd', 'cancel')], verdict: { t: 'cancelled', reason: 'by ada' } },
    {
      what: 'to dead, with a reason',
      given: [order('delivery', 'd', 'cancel', { args: { to: 'dead' }, reason: 'broken' })],
      verdict: { t: 'dead', reason: 'broken' },
    },
    { what: 'another one cancelled', given: [order('delivery', 'e', 'cancel')], verdict: null },
    {
      what: 'its line cancelled',
      given: [order('line', 's k a', 'cancel')],
      verdict: { t: 'cancelled', reason: 'by ada' },
    },
    {
      what: 'its line cancelled before it',
      given: [order('line', 's k a', 'cancel', { atMs: at - 2 })],
      verdict: null,
    },
    { what: 'its line released', given: [order('line', 's k a', 'resume')], verdict: null },
    { what: 'another line cancelled', given: [order('line', 's k b', 'cancel')], verdict: null },
    {
      what: 'its line cancelled, then released: the cancel is carried along',
      given: [
        order('line', 's k a', 'resume', { atMs: at + 9, args: { cancelledMs: at, to: 'dead', cancelReason: 'left' } }),
      ],
      verdict: { t: 'dead', reason: 'left' },
    },
    {
      what: 'that cancel was before it',
      given: [order('line', 's k a', 'resume', { atMs: at + 9, args: { cancelledMs: at - 2 } })],
      verdict: null,
    },
  ])('$what', ({ given, verdict }) => {
    expect(holding(...given).verdict(delivery, 's k a', at)).toEqual(verdict)
  })

  test('a delivery outside of a line is not touched by orders about lines', () => {
    expect(holding(order('line', 's k a', 'cancel')).verdict(delivery, null, at)).toBeNull()
  })
})

test.each([
  { what: 'no order', given: [], released: false },
  {
    what: 'a release that names its head, whatever the clock',
    given: [order('line', 's k a', 'resume', { atMs: 1, args: { head: 'h1' } })],
    released: true,
  },
  {
    what: 'a release that names another head',
    given: [order('line', 's k a', 'resume', { args: { head: 'h0' } })],
    released: false,
  },
  { what: 'a release from after it began to stand', given: [order('line', 's k a', 'resume')], released: true },
  { what: 'a release from before it', given: [order('line', 's k a', 'resume', { atMs: at - 11 })], released: false },
  { what: 'its cancel', given: [order('line', 's k a', 'cancel')], released: true },
  { what: 'a cancel from before it', given: [order('line', 's k a', 'cancel', { atMs: at - 11 })], released: false },
  { what: "its head's cancel", given: [order('delivery', 'h1', 'cancel')], released: true },
  { what: 'a cancel of another delivery', given: [order('delivery', 'h2', 'cancel')], released: false },
  { what: 'an order about its head that is no cancel', given: [order('delivery', 'h1', 'pause')], released: false },
  { what: 'a pause of its subscription', given: [order('subscription', 's', 'pause')], released: false },
])('a stopped line and $what: released $released', ({ given, released }) => {
  expect(holding(...given).released(stopped, at)).toBe(released)
})

test.each([
  { what: 'with the line', atMs: at - 40, headTimeMs: at - 50, released: true },
  {
    what: 'not with the line: it came later, whatever its owner takes for now',
    atMs: at - 10,
    headTimeMs: at - 5,
    released: false,
  },
])("a line whose head is cancelled $what, its owner's clock a minute behind: released $released", (row) => {
  const state = { ...stopped, state: 'blocked' as const, headTimeMs: row.headTimeMs, sinceMs: at - 60_000 }
  expect(holding(order('line', 's k a', 'cancel', { atMs: row.atMs })).released(state, at)).toBe(row.released)
})

test('the same log gives the same orders, compacted or not: only the last record of a target counts', () => {
  const kinds = fc.constantFrom<Control['kind']>('tier', 'subscription', 'delivery', 'line', 'job')
  const whats = fc.constantFrom<Control['order']>('pause', 'resume', 'throttle', 'cancel', 'redrive')
  const entry = fc.tuple(kinds, fc.constantFrom('a', 'b'), fc.option(whats), fc.nat(20))
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 30 }), (log) => {
      const records = log.map(([kind, target, what, ago], i) => ({
        key: `${kind}:${target}`,
        order: what === null ? null : order(kind, target, what, { atMs: at - ago, perSecond: i + 1 }),
      }))
      const whole = new Orders()
      for (const { key, order } of records) whole.apply(key, order)
      const compacted = new Orders()
      const last = new Map(records.map((record, i) => [record.key, i]))
      for (const [i, { key, order }] of records.entries()) if (last.get(key) === i) compacted.apply(key, order)
      const seen = (orders: Orders) =>
        ['a', 'b'].map((t) => [
          orders.tierRate(t, at),
          orders.subscriptionPaused(t, at),
          orders.deliveryVerdict(t, at),
          orders.lineVerdict(t, at - 10, at),
          orders.released({ ...stopped, line: t, head: t }, at),
        ])
      expect(seen(compacted)).toEqual(seen(whole))
      expect(compacted.size).toBe(whole.size)
    }),
  )
})
