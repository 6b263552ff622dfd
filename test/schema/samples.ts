import type { Attempt } from '../../src/core/attempt.ts'
import type { Control } from '../../src/core/control.ts'
import type { LaneState } from '../../src/core/lane-state.ts'
import type { SealedSecret } from '../../src/core/sealed-secret.ts'
import type { Subscription } from '../../src/core/subscription.ts'

/** One sample per shape, held to the type by the compiler and to `test/samples/*.json` by samples.test.ts. */
export const subscriptions = [
  {
    v: 1,
    id: 'sub_orders',
    tenant: 'acme',
    url: 'https://hooks.example.com/orders?t=1',
    types: ['order.created', 'invoice.*'],
    ordering: 'key',
    status: 'paused',
    statusReason: 'moving',
    secrets: [
      { ref: 'kafka:acme-2', fromMs: 1_760_000_000_000 },
      { ref: 'env:ACME_SECRET', untilMs: 1_770_000_000_000 },
    ],
    headers: { 'X-Env': 'prod' },
    timeoutMs: 5000,
    maxInFlight: 4,
    retry: { maxAttempts: 5, baseMs: 1000, factor: 2, capMs: 60_000 },
    onDead: 'block',
    description: 'Orders to the warehouse',
    createdAtMs: 1_760_000_000_000,
    updatedAtMs: 1_760_000_000_001,
  },
  {
    v: 1,
    id: 'all',
    tenant: 'default',
    url: 'https://example.com/',
    types: ['*'],
    ordering: 'none',
    status: 'active',
    secrets: [{ ref: 'file:all.key' }],
    createdAtMs: 0,
    updatedAtMs: 0,
  },
] satisfies Subscription[]

export const attempts = [
  {
    v: 1,
    deliveryId: 'msg_h2Yk',
    subscriptionId: 'sub_orders',
    tenant: 'acme',
    eventId: 'evt-1',
    eventType: 'order.created',
    attempt: 1,
    startedAtMs: 1_760_000_000_000,
    durationMs: 12.5,
    status: 503,
    error: '503',
    errorClass: null,
    outcome: 'retryable',
    settlement: 'scheduled',
    dueMs: 1_760_000_010_000,
    excerpt: 'try later',
    url: 'https://hooks.example.com/orders',
    lane: 3,
    origin: 'webhooks.events/0:1:42',
  },
  {
    v: 1,
    deliveryId: 'msg_x',
    subscriptionId: 'gone',
    tenant: 'default',
    eventId: 'webhooks.events/0/7',
    eventType: 'a',
    attempt: 1,
    startedAtMs: 0,
    durationMs: 0,
    status: null,
    error: 'subscription deleted',
    errorClass: null,
    outcome: null,
    settlement: 'cancelled',
    dueMs: null,
    excerpt: '',
    url: 'https://example.com/',
    lane: 0,
    origin: 'replay:J1:1:0',
  },
] satisfies Attempt[]

export const laneStates = [
  {
    v: 1,
    kind: 'line',
    line: 'sub_orders:order-7',
    state: 'blocked',
    head: 'msg_h2Yk',
    next: 120,
    count: 3,
    since: 4711,
    sinceMs: 1_760_000_000_000,
    bitmap: 'AAE=',
    reason: 'head is retried',
  },
  { v: 1, kind: 'line', line: 'l', state: 'draining', head: null, next: 0, count: 1, since: 0, sinceMs: 0 },
  { v: 1, kind: 'circuit', circuit: 'origin https://example.com', untilMs: 1_760_000_000_000, openings: 2 },
  {
    v: 1,
    kind: 'failing',
    subscriptionId: 'sub_orders',
    sinceMs: 1_760_000_000_000,
    lastMs: 1_760_000_360_000,
    failures: 7,
    told: true,
  },
  { v: 1, kind: 'offsets', topic: 'webhooks.deliveries', base: 12, runs: 'h2:AQI=' },
  { v: 1, kind: 'stream', stream: 'webhooks.events/0', generation: 1, offset: 42, subscriptionId: 'sub_orders' },
] satisfies LaneState[]

export const controls = [
  {
    v: 1,
    kind: 'tier',
    target: 'retry-10s',
    order: 'throttle',
    by: 'alice',
    atMs: 1_760_000_000_000,
    perSecond: 50,
    untilMs: 1_760_003_600_000,
    reason: 'receiver is being moved',
  },
  {
    v: 1,
    kind: 'job',
    target: 'J1',
    order: 'redrive',
    by: 'cli',
    atMs: 0,
    args: { subscription: 'x', all: true, n: 3 },
  },
] satisfies Control[]

export const secrets = [
  {
    v: 1,
    id: 'acme-2',
    version: 1,
    keyId: 'k1',
    nonce: 'AAAAAAAAAAAAAAAA',
    sealed: 'MDEyMzQ1Njc4OWFiY2RlZg==',
    createdAtMs: 1_760_000_000_000,
  },
] satisfies SealedSecret[]
