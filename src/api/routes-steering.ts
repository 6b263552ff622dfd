import type { LineChoiceInput, TierOperations } from '../operations/contract.ts'
import type { OrderInput } from '../operations/order-input.ts'
import { choice, flag, list, request, text, whole } from './json-schema.ts'
import type { ApiRoute } from './route.ts'

const order = {
  reason: text(1000),
  by: text(200, 'Stands beside the name of the token.'),
  forMs: whole(1, 31_536_000_000),
}
const line = {
  line: text(2000, 'The whole line as the list shows it: `billing k order-7`.'),
  subscription: text(100, 'Instead: the line of this subscription, and of this key.'),
  key: text(1024),
}

/** Lines, tiers, lanes, orders, topics: what holds deliveries up and lets them go. */
export const steeringRoutes: readonly ApiRoute[] = [
  {
    method: 'GET',
    path: '/v1/lines',
    scans: true,
    scope: 'read',
    tag: 'Lines',
    summary: 'List lines that are not simply open, the longest-standing first',
    query: {
      subscription: text(100),
      state: choice(['blocked', 'draining', 'stopped']),
      limit: whole(1, 10_000, '100 by default.'),
    },
    status: 200,
    answer: 'LineList',
    handle: async ({ ops, query }) => ({ body: await ops.lines.list({ limit: 100, ...(query as object) }) }),
  },
  {
    method: 'GET',
    path: '/v1/line',
    scans: true,
    scope: 'read',
    tag: 'Lines',
    summary: 'Show one line: its head, what is parked behind it, why it stands',
    query: { ...line, limit: whole(0, 1000, 'How many of the parked deliveries; 10 by default.') },
    status: 200,
    answer: 'LineDetails',
    async handle({ ops, query }) {
      const { limit = 10, ...which } = query as LineChoiceInput & { limit?: number }
      return { body: await ops.lines.show(which, limit) }
    },
  },
  {
    method: 'POST',
    path: '/v1/line/release',
    scans: true,
    scope: 'write',
    tag: 'Lines',
    summary: 'Let a blocked or stopped line go on',
    body: request({ ...line, ...order }),
    status: 202,
    answer: 'LineOrdered',
    handle: async ({ ops, body }) => ({ status: 202, body: await ops.lines.release(body, body) }),
  },
  {
    method: 'POST',
    path: '/v1/line/skip',
    scans: true,
    scope: 'write',
    tag: 'Lines',
    summary: 'Cancel the head of a line; the line goes on',
    body: request({ ...line, ...order, dead: flag('Send the head to the dead letters instead.') }),
    status: 202,
    answer: 'LineOrdered',
    handle: async ({ ops, body }) => ({ status: 202, body: await ops.lines.skip(body, body) }),
  },
  {
    method: 'POST',
    path: '/v1/line/cancel',
    scans: true,
    scope: 'write',
    tag: 'Lines',
    summary: 'Cancel everything that waits in a line now',
    body: request({
      ...line,
      ...order,
      dead: flag('Send it to the dead letters instead.'),
      confirmed: flag('Do it: this can not be undone.'),
    }),
    status: 202,
    answer: 'LineOrdered',
    async handle({ ops, body }) {
      const input = body as LineChoiceInput & OrderInput & { dead?: boolean; confirmed?: boolean }
      return { status: 202, body: await ops.lines.cancel(input, { ...input, confirmed: input.confirmed === true }) }
    },
  },
  {
    method: 'GET',
    path: '/v1/tiers',
    scans: true,
    scope: 'read',
    operatorsOnly: true,
    tag: 'Tiers',
    summary: 'Retry tiers: depth, lowest due time, orders in force',
    status: 200,
    answer: 'TierList',
    handle: async ({ ops }) => ({ body: await ops.tiers.list() }),
  },
  tier('pause', 'Nothing leaves the tier until it is resumed; due times are kept', {}, []),
  tier('resume', 'Take back a pause or a throttle', {}, []),
  tier(
    'throttle',
    'At most so many leave the tier per second',
    { perSecond: { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000 } },
    ['perSecond'],
  ),
  {
    method: 'GET',
    path: '/v1/lanes',
    scans: true,
    scope: 'read',
    operatorsOnly: true,
    tag: 'Service',
    summary: 'Lanes: owner, what is ready, how old the oldest is',
    status: 200,
    answer: 'LaneList',
    handle: async ({ ops }) => ({ body: { lanes: (await ops.status([])).lanes } }),
  },
  {
    method: 'GET',
    path: '/v1/status',
    scans: true,
    scope: 'read',
    operatorsOnly: true,
    tag: 'Service',
    summary: 'What Kafka says of the work: lanes, tiers, lines, lag',
    status: 200,
    answer: 'Status',
    handle: async ({ ops }) => ({ body: await ops.status([]) }),
  },
  {
    method: 'GET',
    path: '/v1/topics',
    scope: 'read',
    operatorsOnly: true,
    tag: 'Service',
    summary: 'Topics, and what differs from what they should be',
    status: 200,
    answer: 'TopicList',
    handle: async ({ ops }) => ({ body: await ops.topics() }),
  },
  {
    method: 'GET',
    path: '/v1/state',
    scans: true,
    scope: 'read',
    tag: 'Service',
    summary: 'How far the delivery state follows the log, and deliveries by status',
    description: 'Callers bound to a tenant get the counts of theirs.',
    status: 200,
    answer: 'StateStatus',
    handle: async ({ ops }) => ({ body: await ops.state() }),
  },
  {
    method: 'GET',
    path: '/v1/orders',
    scope: 'read',
    operatorsOnly: true,
    tag: 'Orders',
    summary: "Operators' orders, newest first",
    query: {
      kind: choice(['tier', 'subscription', 'delivery', 'line', 'job']),
      all: flag('Also those that ended or were taken back.'),
    },
    status: 200,
    answer: 'OrderList',
    handle: async ({ ops, query }) => ({ body: await ops.orders.list(query) }),
  },
  {
    method: 'POST',
    path: '/v1/orders/clear',
    scope: 'write',
    operatorsOnly: true,
    tag: 'Orders',
    summary: 'Take orders back, whatever they are',
    body: request({
      targets: list(text(2100, 'kind:target'), 1000),
      ended: flag('All that are no longer in force.'),
    }),
    status: 200,
    answer: 'ClearedOrders',
    async handle({ ops, body }) {
      const { targets = [], ended = false } = body as { targets?: string[]; ended?: boolean }
      return { body: await ops.orders.clear(targets, { ended }) }
    },
  },
]

function tier(
  action: 'pause' | 'resume' | 'throttle',
  summary: string,
  properties: Record<string, object>,
  required: readonly string[],
): ApiRoute {
  return {
    method: 'POST',
    path: `/v1/tiers/{tier}/${action}`,
    scope: 'write',
    operatorsOnly: true,
    tag: 'Tiers',
    summary,
    body: request({ ...order, ...(properties as Record<string, Record<string, unknown>>) }, required),
    bodyOptional: required.length === 0,
    status: 202,
    answer: 'Ordered',
    async handle({ ops, params, body }) {
      const { perSecond, ...input } = (body ?? {}) as OrderInput & { perSecond?: number }
      const what: Parameters<TierOperations['order']>[1] =
        action === 'throttle' ? { order: action, perSecond: perSecond as number } : { order: action }
      return { status: 202, body: await ops.tiers.order(params.tier as string, what, input) }
    },
  }
}
