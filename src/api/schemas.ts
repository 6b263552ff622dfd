import { deliveryStatuses } from '../core/state-view.ts'
import { schemas as records } from '../schema/compile.ts'
import {
  answer,
  choice,
  epochMs,
  flag,
  type JsonSchema,
  list,
  orNull,
  ref,
  request,
  text,
  whole,
} from './json-schema.ts'

const any: JsonSchema = {}
const id = text(100)
const number: JsonSchema = { type: 'number' }
const string: JsonSchema = { type: 'string' }
const bool: JsonSchema = { type: 'boolean' }
const maybe = (schema: JsonSchema) => orNull(schema)

/** The record's own schema, less what is Hooktide's to write. */
function subscriptionInput(required: readonly string[]): JsonSchema {
  const { v: _v, createdAtMs: _c, updatedAtMs: _u, ...given } = records.subscription.properties
  return request(required.length > 0 ? given : nullable(given), required)
}

/** In a change null takes a field away. */
function nullable(properties: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, orNull(schema)]))
}

const status = choice(deliveryStatuses)

const delivery = answer({
  id: string,
  tenant: string,
  subscriptionId: string,
  eventId: string,
  eventType: string,
  status,
  attempts: number,
  dueMs: maybe(number),
  lastError: maybe(string),
  lastStatus: maybe(number),
  deadReason: maybe(string),
  createdMs: number,
  updatedMs: number,
  orderingKey: maybe(string),
  sendings: number,
  origin: string,
})

const { $schema: _s, $id: _i, ...subscription } = records.subscription
const { $schema: _s2, $id: _i2, ...control } = records.control

/** `components/schemas` of the OpenAPI document: requests are checked against them, tests check the answers. */
export const apiSchemas: Readonly<Record<string, JsonSchema>> = {
  Problem: answer(
    {
      type: { type: 'string', description: 'Stable; one per kind of problem.' },
      title: string,
      status: number,
      detail: string,
      instance: { type: 'string', description: 'urn:hooktide:request: and the request id, as in the log.' },
      code: string,
      remedy: maybe(string),
      details: list(string),
      errors: list(answer({ field: string, value: string, message: string, remedy: string })),
    },
    'RFC 9457 problem details.',
  ),
  Subscription: subscription as JsonSchema,
  SubscriptionInput: subscriptionInput(['url', 'secrets']),
  SubscriptionReplacement: subscriptionInput(['url']),
  SubscriptionChange: subscriptionInput([]),
  SubscriptionList: answer({
    subscriptions: list(ref('Subscription')),
    unreadable: list(answer({ id: string, reason: string })),
  }),
  WrittenSubscription: answer({
    subscription: ref('Subscription'),
    newSecrets: list(answer({ ref: string, secret: { type: 'string', description: 'Told this once.' } })),
    notes: list(string),
  }),
  ApplyInput: request(
    {
      subscriptions: list({ type: 'object' }, 10_000),
      prune: flag('Also remove what is not named.'),
      tenant: { ...text(100), description: 'With prune: of this tenant only.' },
      dryRun: flag('Only say what would be done.'),
      label: text(200, 'What they come from, for messages.'),
    },
    ['subscriptions'],
  ),
  AppliedPlan: answer({
    applied: bool,
    plan: list({ type: 'object' }),
    counts: { type: 'object' },
    notes: list(string),
  }),
  SubscriptionHealth: answer({
    id: string,
    status: string,
    statusReason: maybe(string),
    health: maybe({ type: 'object' }),
  }),
  TestSent: answer({ deliveryId: string, eventId: string }),
  Verified: answer({ verified: list(answer({ id: string, verified: bool, detail: string, status: string })) }),
  Event: request({
    type: text(128, 'Without it data must be an envelope, or a structured CloudEvent, that says what it is.'),
    id: text(256, 'Unique in its topic; the same again is the same event.'),
    tenant: text(100),
    key: text(1024, 'Ordering key.'),
    contentType: text(256, 'Of the body; application/json by default.'),
    traceparent: text(100),
    data: { description: 'The body, as a JSON value; or:' },
    dataBase64: { type: 'string', description: 'The body, byte for byte, in base64.' },
    topic: text(249, 'Events topic; the first of topics.events by default.'),
  }),
  EventBatch: request({ topic: text(249), events: { ...list(ref('Event'), 1000), minItems: 1 } }, ['events']),
  AcceptedEvent: answer({ eventId: string, topic: string, partition: number, offset: number }),
  AcceptedEvents: answer({ events: list(ref('AcceptedEvent')) }),
  EventTarget: answer({
    topic: string,
    partitions: number,
    limits: answer({ maxBytes: number, maxHeaders: number }),
    maxLargeBytes: maybe(number),
  }),
  Delivery: delivery,
  DeliveryDetail: { ...delivery, properties: { ...(delivery.properties as object), log: list({ type: 'object' }) } },
  DeliveryPage: answer({ items: list(ref('Delivery')), nextCursor: maybe(string) }),
  Attempts: answer({ attempts: list({ type: 'object' }) }),
  Story: answer({
    deliveryId: string,
    state: string,
    place: any,
    order: any,
    attempts: list(any),
    places: list(any),
    scanned: number,
  }),
  Order: control as JsonSchema,
  Ordered: answer({ order: ref('Order') }),
  OrderInput: request({
    reason: text(1000),
    by: text(200, 'Stands beside the name of the token.'),
    forMs: whole(1, 31_536_000_000, 'Ends by itself after it.'),
  }),
  OrderList: answer({ orders: list(answer({ key: string, order: any, problem: maybe(string), inForce: bool })) }),
  ClearedOrders: answer({ cleared: list(string) }),
  DeadLetter: answer({
    deliveryId: maybe(string),
    subscriptionId: maybe(string),
    reason: string,
    deadAtMs: number,
    partition: number,
    offset: number,
  }),
  DeadPage: answer({
    dead: list(ref('DeadLetter')),
    cursor: maybe({
      type: 'string',
      description: 'A page may be short because it took long: go on while it is there.',
    }),
  }),
  RedriveInput: request({
    ids: list(id, 10_000),
    subscription: id,
    tenant: text(200),
    reason: text(40),
    lastError: text(200, 'With this last error: `503`, `timeout`.'),
    since: epochMs('Died at or after it'),
    until: epochMs('Died before it'),
    cursor: text(40),
    perSecond: { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000 },
    dryRun: flag(),
    all: flag('Everything there is, where no id and no filter is given.'),
  }),
  RedriveReport: answer({
    job: string,
    dryRun: bool,
    redriven: number,
    repeated: number,
    unreadable: number,
    orphaned: number,
    notFound: list(string, 10_000),
    interrupted: bool,
    cursor: maybe(string),
  }),
  Job: answer({
    id: string,
    kind: choice(['replay', 'redrive']),
    state: choice(['running', 'cancelling', 'done', 'cancelled', 'failed']),
    by: string,
    atMs: number,
    reason: maybe(string),
    cancelledBy: maybe(string),
    subscription: maybe(string),
    perSecond: maybe(number),
    untilLive: bool,
    filter: { type: 'object' },
    written: number,
    passed: number,
    unreadable: number,
    done: number,
    total: number,
    parts: list({ type: 'object' }),
  }),
  JobList: answer({ jobs: list(ref('Job')) }),
  ReplayPreview: answer({
    subscription: string,
    events: number,
    unreadable: number,
    wanted: number,
    reached: number,
    shadow: maybe(answer({ wanted: number, added: number, removed: number })),
    complete: bool,
    examples: list(answer({ eventId: string, type: string, timeMs: number, sent: bool })),
  }),
  Line: answer({
    line: string,
    subscriptionId: string,
    state: string,
    head: maybe(string),
    parked: number,
    sinceMs: number,
    lane: number,
  }),
  LineList: answer({ lines: list(ref('Line')), total: number }),
  LineDetails: answer({ lines: list(ref('Line')) }),
  LineOrdered: answer({ line: string, order: maybe(ref('Order')), head: maybe(string), parked: number }),
  Tier: answer({
    tier: string,
    delayMs: number,
    state: string,
    waiting: number,
    exact: bool,
    lowestDueMs: maybe(number),
    order: maybe(ref('Order')),
  }),
  TierList: answer({ tiers: list(ref('Tier')) }),
  LaneList: answer({
    lanes: list(
      answer({ lane: number, owner: maybe(string), lag: number, ready: number, oldestReadyMs: maybe(number) }),
    ),
  }),
  Status: answer({ atMs: number, lanes: list(any), tiers: list(any), lag: list(any) }),
  StateStatus: answer({
    behind: number,
    partitions: number,
    counts: answer(Object.fromEntries(deliveryStatuses.map((name) => [name, number]))),
  }),
  TopicList: answer({ topics: list(answer({ topic: string, action: string })) }),
}
