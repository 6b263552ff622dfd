import type { JobRedriveInput, ReplayInput } from '../operations/job-contract.ts'
import type { OrderInput } from '../operations/order-input.ts'
import { epochMs, flag, request, text, whole } from './json-schema.ts'
import type { ApiRoute } from './route.ts'

const tag = 'Jobs'
const perSecond = {
  type: 'number',
  exclusiveMinimum: 0,
  maximum: 1_000_000,
  description: 'Most deliveries written a second; 500 by default.',
}
const order = { reason: text(1000), by: text(200, 'Stands beside the name of the token.') }
const replayed = {
  subscription: text(100),
  from: text(
    100_000,
    'An offset for all partitions, or `topic/partition=offset` with commas; the start of the log by default.',
  ),
  to: text(100_000, 'Up to but without it; the end of the log by default.'),
  fromMs: epochMs('Events from this time on'),
  toMs: epochMs('Events before it'),
  type: text(128, 'Only of this type: exact, a prefix with a final `.*`, or `*`.'),
  onlyMissing: flag('Leave out what was delivered, and what waits for a retry.'),
}

/** Replays and redrives: worked by the service, recorded in `control`. */
export const jobRoutes: readonly ApiRoute[] = [
  {
    method: 'POST',
    path: '/v1/replays',
    scans: true,
    scope: 'replay',
    tag,
    summary: 'Match events again and deliver them again, under the same ids',
    description:
      'With `untilLive` the subscription gets no live traffic of a partition before the replay has caught up there, and all of it from then on: no gap and no double. With `expected` the subscription is made afterwards, under this id.',
    body: request(
      {
        ...replayed,
        perSecond,
        untilLive: flag('Go on until live traffic is caught up with.'),
        expected: flag('The subscription is about to be made.'),
        ...order,
      },
      ['subscription'],
    ),
    status: 202,
    answer: 'Job',
    handle: async ({ ops, body }) => ({ status: 202, body: await ops.jobs.replay(body as ReplayInput) }),
  },
  {
    method: 'POST',
    path: '/v1/replays/preview',
    scans: true,
    scope: 'read',
    tag,
    summary: 'What a replay would send; with `shadow`, under a changed filter or other types',
    description: 'Sends nothing. Looks for some seconds; `complete` says whether that was enough.',
    body: request(
      {
        ...replayed,
        shadow: request({
          filter: { anyOf: [{ type: 'object', minProperties: 1 }, { type: 'null' }], description: 'null: none.' },
          types: { type: 'array', items: text(128), minItems: 1, maxItems: 200 },
        }),
      },
      ['subscription'],
    ),
    status: 200,
    answer: 'ReplayPreview',
    handle: async ({ ops, body }) => ({ body: await ops.jobs.preview(body as ReplayInput) }),
  },
  {
    method: 'POST',
    path: '/v1/redrive-jobs',
    scans: true,
    scope: 'replay',
    tag,
    summary: 'Send dead letters again, as a job of the service',
    description: 'For many of them; `POST /v1/redrives` is for some, and answers when they are sent.',
    body: request({
      subscription: text(100),
      tenant: text(200, 'Only of this tenant.'),
      reason: text(40, 'Dead for this reason.'),
      lastError: text(200, 'With this last error: `503`, `timeout`.'),
      since: epochMs('Died at or after it'),
      until: epochMs('Died before it'),
      perSecond,
      by: order.by,
      why: text(1000, 'For whoever looks later.'),
    }),
    status: 202,
    answer: 'Job',
    handle: async ({ ops, body }) => ({ status: 202, body: await ops.jobs.redrive(body as JobRedriveInput) }),
  },
  {
    method: 'GET',
    path: '/v1/jobs',
    scope: 'read',
    tag,
    summary: 'Jobs that are not over, newest first',
    query: { all: flag('Those that are over, too.'), limit: whole(1, 1000, '50 by default.') },
    status: 200,
    answer: 'JobList',
    handle: async ({ ops, query }) => ({ body: await ops.jobs.list(query) }),
  },
  {
    method: 'GET',
    path: '/v1/jobs/{id}',
    scope: 'read',
    tag,
    summary: 'Show a job: how far it is, part by part',
    status: 200,
    answer: 'Job',
    handle: async ({ ops, params }) => ({ body: await ops.jobs.show(params.id as string) }),
  },
  {
    method: 'DELETE',
    path: '/v1/jobs/{id}',
    scope: 'replay',
    tag,
    summary: 'Cancel a job',
    description: 'Nothing more is written within a second; what is written already goes its way.',
    query: order,
    status: 202,
    answer: 'Job',
    async handle({ ops, params, query }) {
      return { status: 202, body: await ops.jobs.cancel(params.id as string, query as OrderInput) }
    },
  },
]
