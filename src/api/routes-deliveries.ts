import { HooktideError } from '../core/error.ts'
import type { DeliveryQuery } from '../core/state-view.ts'
import { deliveryStatuses } from '../core/state-view.ts'
import type { RedriveInput } from '../operations/contract.ts'
import { choice, epochMs, flag, ref, request, text, whole } from './json-schema.ts'
import type { ApiRoute } from './route.ts'

const tag = 'Deliveries'
const at = '/v1/deliveries/{id}'
const cursor = text(500, 'nextCursor of the page before.')

export const deliveryRoutes: readonly ApiRoute[] = [
  {
    method: 'GET',
    path: '/v1/deliveries',
    scope: 'read',
    tag,
    summary: 'Search deliveries, newest first',
    description: 'From the delivery state, which trails the log by a moment.',
    query: {
      deliveryId: text(200),
      eventId: text(256),
      subscription: text(100),
      tenant: text(100),
      status: choice(deliveryStatuses),
      type: text(128),
      from: epochMs('Written at or after it'),
      to: epochMs('Written before it'),
      limit: whole(1, 1000, '100 by default.'),
      cursor,
    },
    status: 200,
    answer: 'DeliveryPage',
    async handle({ ops, query }) {
      const {
        subscription,
        from,
        to,
        limit = 100,
        cursor = null,
        ...rest
      } = query as {
        subscription?: string
        from?: number
        to?: number
        limit?: number
        cursor?: string
      } & DeliveryQuery
      const wanted: DeliveryQuery = {
        ...rest,
        ...(subscription === undefined ? {} : { subscriptionId: subscription }),
        ...(from === undefined ? {} : { fromMs: from }),
        ...(to === undefined ? {} : { toMs: to }),
      }
      return { body: await ops.deliveries.search(wanted, { limit, cursor }) }
    },
  },
  {
    method: 'GET',
    path: at,
    scope: 'read',
    tag,
    summary: 'Show a delivery with its attempts',
    status: 200,
    answer: 'DeliveryDetail',
    handle: async ({ ops, params }) => ({ body: await ops.deliveries.show(params.id as string) }),
  },
  {
    method: 'GET',
    path: `${at}/attempts`,
    scope: 'read',
    tag,
    summary: 'Its attempts, oldest first',
    status: 200,
    answer: 'Attempts',
    handle: async ({ ops, params }) => ({ body: { attempts: (await ops.deliveries.show(params.id as string)).log } }),
  },
  {
    method: 'GET',
    path: `${at}/story`,
    scans: true,
    scope: 'read',
    tag,
    summary: 'Everything the log holds of a delivery',
    description: 'Reads the log itself, so it needs no delivery state and takes longer.',
    query: { subscription: text(100, 'Its subscription: one lane is read instead of all.') },
    status: 200,
    answer: 'Story',
    async handle({ ops, params, query }) {
      return {
        body: await ops.deliveries.story(params.id as string, (query as { subscription?: string }).subscription),
      }
    },
  },
  {
    method: 'POST',
    path: `${at}/retry`,
    scans: true,
    scope: 'replay',
    tag,
    summary: 'Send a delivery that is final again, now',
    description: 'Under the same id, attempts counted anew.',
    status: 202,
    answer: 'RedriveReport',
    handle: async ({ ops, params }) => ({ status: 202, body: await ops.deliveries.retry(params.id as string) }),
  },
  {
    method: 'POST',
    path: `${at}/cancel`,
    scans: true,
    scope: 'write',
    tag,
    summary: 'Attempt a delivery no more',
    description: 'Obeyed when it would be attempted next; a line that waits for it goes on.',
    body: request({
      subscription: text(100),
      dead: flag('Send it to the dead letters instead.'),
      unseen: flag('Do not look for it first.'),
      reason: text(1000),
      by: text(200),
      forMs: whole(1, 31_536_000_000),
    }),
    bodyOptional: true,
    status: 202,
    answer: 'Ordered',
    handle: async ({ ops, params, body }) => ({
      status: 202,
      body: await ops.deliveries.cancel(params.id as string, body ?? {}),
    }),
  },
  {
    method: 'GET',
    path: '/v1/dead',
    scans: true,
    scope: 'read',
    tag: 'Dead letters',
    summary: 'List dead letters, oldest of each lane first',
    query: {
      subscription: text(100),
      tenant: text(200),
      reason: text(40),
      lastError: text(200, 'With this last error: `503`, `timeout`.'),
      since: epochMs('Died at or after it'),
      until: epochMs('Died before it'),
      cursor: text(40),
      limit: whole(1, 1000, '50 by default.'),
    },
    status: 200,
    answer: 'DeadPage',
    handle: async ({ ops, query }) => ({ body: await ops.dead.list({ limit: 50, ...(query as object) }) }),
  },
  {
    method: 'GET',
    path: '/v1/dead/{id}',
    scans: true,
    scope: 'read',
    tag: 'Dead letters',
    summary: 'Show a dead letter, body included',
    description: 'By delivery id, or its place in `dead`: partition/offset, with the slash encoded.',
    query: { subscription: text(100, 'Its subscription: looks in one lane only.') },
    status: 200,
    answer: 'DeadLetter',
    async handle({ ops, params, query }) {
      return { body: await ops.dead.show(params.id as string, (query as { subscription?: string }).subscription) }
    },
  },
  {
    method: 'POST',
    path: '/v1/redrives',
    scans: true,
    scope: 'replay',
    tag: 'Dead letters',
    summary: 'Send dead letters again',
    description:
      'Same delivery ids, attempts counted anew. Works for some seconds a call; while `cursor` is not null, call again with it.',
    body: ref('RedriveInput'),
    status: 200,
    answer: 'RedriveReport',
    async handle({ ops, body }) {
      const { all, ids = [], dryRun = false, ...filter } = body as Partial<RedriveInput> & { all?: boolean }
      const { subscription, tenant, reason, lastError, since, until } = filter
      const given = subscription ?? tenant ?? reason ?? lastError ?? since ?? until
      if (ids.length === 0 && given === undefined && all !== true && !dryRun) {
        throw new HooktideError('usage', 'this would send every dead letter there is', {
          problems: [
            {
              field: 'ids',
              value: '',
              message: 'none is given, and no filter',
              remedy: 'give ids or a filter, or all: true',
            },
          ],
        })
      }
      return { body: await ops.dead.redrive({ ...filter, ids, dryRun }) }
    },
  },
]
