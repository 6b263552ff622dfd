import type { Behaviour } from '../cli/receiver.ts'
import type { Ordering, Subscription } from '../core/subscription.ts'

/** How deliveries to an endpoint must end. `delivered`: or, if it kept failing, `exhausted` after the last attempt. */
export type Expectation = 'delivered' | 'rejected' | 'gone'

/** One of the demo's subscriptions and the endpoint behind it. */
export interface Part {
  readonly id: string
  readonly about: string
  readonly types: readonly string[]
  readonly ordering: Ordering
  readonly maxInFlight?: number
  readonly behaviour: Behaviour
  readonly expect: Expectation
}

/** The eight of them. `perSecond`: events produced in a second, which the rates and intervals of failure follow. */
export function createCast(events: number, perSecond: number): readonly Part[] {
  // Each failure of an ordered key stops the key for about a second: a dozen in all, however many events.
  const orderedFails = Math.max(10, Math.ceil(events / 12))
  const limit = Math.max(2, Math.round(Math.min(events, perSecond) * 0.08))
  const all = ['*']
  return [
    {
      id: 'plain',
      about: 'answers 200',
      types: all,
      ordering: 'none',
      behaviour: {},
      expect: 'delivered',
    },
    {
      id: 'filtered',
      about: 'wants push, pull_request.*, release.published',
      types: ['push', 'pull_request.*', 'release.published'],
      ordering: 'key',
      behaviour: {},
      expect: 'delivered',
    },
    {
      id: 'ordered',
      about: `in order by repository, 503 every ${orderedFails}th time`,
      types: all,
      ordering: 'key',
      behaviour: { status: 503, every: orderedFails },
      expect: 'delivered',
    },
    {
      id: 'slow',
      about: 'takes 300 ms for each',
      types: all,
      ordering: 'none',
      maxInFlight: 48,
      behaviour: { delayMs: 300 },
      expect: 'delivered',
    },
    {
      id: 'flaky',
      about: '503 every third time',
      types: all,
      ordering: 'none',
      behaviour: { status: 503, every: 3 },
      expect: 'delivered',
    },
    {
      id: 'limited',
      about: `429 with Retry-After: 1 above ${limit} a second`,
      types: ['issues.*', 'issue_comment.*'],
      ordering: 'none',
      behaviour: { status: 429, retryAfterS: 1, perSecond: limit },
      expect: 'delivered',
    },
    {
      id: 'broken',
      about: 'answers 400 to all',
      types: all,
      ordering: 'key',
      behaviour: { status: 400 },
      expect: 'rejected',
    },
    {
      id: 'gone',
      about: 'answers 410: to be disabled',
      types: all,
      ordering: 'key',
      behaviour: { status: 410 },
      expect: 'gone',
    },
  ]
}

export function pathOf(part: Pick<Part, 'id'>): string {
  return `/${part.id}`
}

/** What is written to the `subscriptions` topic. */
export function subscriptionOf(part: Part, port: number, secretRef: string, nowMs: number): Subscription {
  return {
    v: 1,
    id: part.id,
    tenant: 'default',
    url: `http://127.0.0.1:${port}${pathOf(part)}`,
    types: part.types,
    ordering: part.ordering,
    status: 'active',
    secrets: [{ ref: secretRef }],
    ...(part.maxInFlight === undefined ? {} : { maxInFlight: part.maxInFlight }),
    description: part.about,
    createdAtMs: Math.floor(nowMs),
    updatedAtMs: Math.floor(nowMs),
  }
}
