import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Attempt, SettlementName } from '../../src/core/attempt.ts'
import type { Control, ControlKind, ControlOrder } from '../../src/core/control.ts'
import { deadHeader, decodeDelivery, deliveryHeader, encodeDelivery, lineHeader } from '../../src/core/delivery.ts'
import type { LineState, StreamState } from '../../src/core/lane-state.ts'
import type { FailureClass, Outcome } from '../../src/core/outcome.ts'
import { headerMap } from '../../src/core/record.ts'
import { rejectedHeader } from '../../src/core/rejected.ts'
import type { Result } from '../../src/core/result.ts'
import type { SealedSecret } from '../../src/core/sealed-secret.ts'
import type {
  Ordering,
  RetryOverride,
  SecretReference,
  Subscription,
  SubscriptionStatus,
} from '../../src/core/subscription.ts'
import { schemas, validator } from '../../src/schema/compile.ts'
import {
  decodeAttempt,
  decodeControl,
  decodeLaneState,
  decodeRejected,
  decodeSecret,
  decodeSubscription,
  headerTexts,
} from '../../src/schema/decode.ts'
import * as samples from './samples.ts'

/** Every key of the type, true where it is required: the compiler refuses a key too many, too few or of the wrong kind. */
type Keys<T> = { [K in keyof T]-?: Record<string, never> extends Pick<T, K> ? false : true }
type Shape = { properties: object; required?: string[] }

const [line, stream] = schemas.laneState.oneOf as unknown as [Shape, Shape]
const { properties } = schemas.subscription

const shapes: [string, Shape, Record<string, boolean>][] = [
  [
    'subscription',
    schemas.subscription,
    {
      v: true,
      id: true,
      tenant: true,
      url: true,
      types: true,
      ordering: true,
      status: true,
      statusReason: false,
      secrets: true,
      headers: false,
      timeoutMs: false,
      maxInFlight: false,
      retry: false,
      onDead: false,
      auth: false,
      tls: false,
      contentType: false,
      legacySignature: false,
      rateLimit: false,
      filter: false,
      transform: false,
      whileDisabled: false,
      disableAfterMs: false,
      spread: false,
      description: false,
      createdAtMs: true,
      updatedAtMs: true,
    } satisfies Keys<Subscription>,
  ],
  [
    'subscription.secrets[]',
    properties.secrets.items,
    { ref: true, fromMs: false, untilMs: false } satisfies Keys<SecretReference>,
  ],
  [
    'subscription.retry',
    properties.retry,
    { maxAttempts: false, baseMs: false, factor: false, capMs: false } satisfies Keys<RetryOverride>,
  ],
  [
    'attempt',
    schemas.attempt,
    {
      v: true,
      deliveryId: true,
      subscriptionId: true,
      tenant: true,
      eventId: true,
      eventType: true,
      attempt: true,
      startedAtMs: true,
      durationMs: true,
      status: true,
      error: true,
      errorClass: true,
      outcome: true,
      settlement: true,
      dueMs: true,
      excerpt: true,
      url: true,
      lane: true,
      urlChanged: false,
      origin: true,
    } satisfies Keys<Attempt>,
  ],
  [
    'lane-state line',
    line,
    {
      v: true,
      kind: true,
      line: true,
      state: true,
      head: true,
      headTimeMs: false,
      next: true,
      count: true,
      since: true,
      sinceMs: true,
      bitmap: false,
      reason: false,
    } satisfies Keys<LineState>,
  ],
  [
    'lane-state stream',
    stream,
    {
      v: true,
      kind: true,
      stream: true,
      generation: true,
      offset: true,
      subscriptionId: true,
    } satisfies Keys<StreamState>,
  ],
  [
    'control',
    schemas.control,
    {
      v: true,
      kind: true,
      target: true,
      order: true,
      by: true,
      atMs: true,
      perSecond: false,
      untilMs: false,
      reason: false,
      args: false,
    } satisfies Keys<Control>,
  ],
  [
    'secret',
    schemas.secret,
    {
      v: true,
      id: true,
      version: true,
      keyId: true,
      nonce: true,
      sealed: true,
      createdAtMs: true,
    } satisfies Keys<SealedSecret>,
  ],
]

describe('types and schemas name the same properties, required ones included', () => {
  test.each(shapes)('%s', (_, schema, keys) => {
    expect(Object.keys(schema.properties).toSorted()).toEqual(Object.keys(keys).toSorted())
    const required = Object.keys(keys).filter((key) => keys[key])
    expect((schema.required ?? []).toSorted()).toEqual(required.toSorted())
  })

  test('the header schemas name the headers the code writes', () => {
    const written = [...Object.values(deliveryHeader), lineHeader, ...Object.values(deadHeader)]
    expect(Object.keys(schemas.deliveryHeaders.properties).toSorted()).toEqual(written.toSorted())
    expect(Object.keys(schemas.rejected.properties).toSorted()).toEqual(Object.values(rejectedHeader).toSorted())
  })
})

describe('types and schemas name the same values', () => {
  const attempt = schemas.attempt.properties
  const enums: [string, readonly (string | null)[], Record<string, true>][] = [
    [
      'ordering',
      properties.ordering.enum,
      { none: true, key: true, subscription: true } satisfies Record<Ordering, true>,
    ],
    [
      'status',
      properties.status.enum,
      { active: true, paused: true, disabled: true } satisfies Record<SubscriptionStatus, true>,
    ],
    [
      'onDead',
      properties.onDead.enum,
      { continue: true, block: true } satisfies Record<NonNullable<Subscription['onDead']>, true>,
    ],
    [
      'whileDisabled',
      properties.whileDisabled.enum,
      { hold: true, drop: true } satisfies Record<NonNullable<Subscription['whileDisabled']>, true>,
    ],
    [
      'errorClass',
      attempt.errorClass.enum,
      {
        dns: true,
        connect: true,
        tls: true,
        timeout: true,
        reset: true,
        protocol: true,
        blocked: true,
        secret: true,
        auth: true,
        body: true,
        local: true,
      } satisfies Record<FailureClass, true>,
    ],
    [
      'outcome',
      attempt.outcome.enum,
      {
        delivered: true,
        retryable: true,
        rejected: true,
        gone: true,
        blocked: true,
        interrupted: true,
      } satisfies Record<Outcome['t'], true>,
    ],
    [
      'settlement',
      attempt.settlement.enum,
      { done: true, scheduled: true, dead: true, cancelled: true, released: true } satisfies Record<
        SettlementName,
        true
      >,
    ],
    [
      'control kind',
      schemas.control.properties.kind.enum,
      { tier: true, subscription: true, delivery: true, line: true, job: true } satisfies Record<ControlKind, true>,
    ],
    [
      'control order',
      schemas.control.properties.order.enum,
      { pause: true, resume: true, throttle: true, cancel: true, redrive: true, replay: true } satisfies Record<
        ControlOrder,
        true
      >,
    ],
  ]
  test.each(enums)('%s', (_, inSchema, inType) => {
    expect(inSchema.filter((value) => value !== null).toSorted()).toEqual(Object.keys(inType).toSorted())
  })
})

describe('samples are valid and come back as they were', () => {
  type Decode = (record: { value: Buffer }) => Result<unknown>
  const kinds: [string, readonly object[], Decode][] = [
    ['subscription', samples.subscriptions, decodeSubscription],
    ['attempt', samples.attempts, decodeAttempt],
    ['lane-state', samples.laneStates, decodeLaneState],
    ['control', samples.controls, decodeControl],
    ['secret', samples.secrets, decodeSecret],
  ]
  test.each(kinds)('%s: the file is the typed sample, and decodes to it', (name, typed, decode) => {
    expect(sampleFile(name)).toEqual(typed)
    for (const value of typed)
      expect(decode({ value: Buffer.from(JSON.stringify(value)) })).toEqual({ ok: true, value })
  })

  test('delivery headers: valid, decoded and encoded to the same headers', () => {
    for (const texts of sampleFile('delivery-headers') as Record<string, string>[]) {
      expect(validator('deliveryHeaders')(texts)).toBe(true)
      const decoded = decodeDelivery({ value: Buffer.from('{}'), headers: headerMap(Object.entries(texts)) })
      if (!decoded.ok) throw new Error(decoded.reason)
      // What a move to `parked` or `dead` adds is not the delivery's own.
      const own = Object.entries(texts).filter(([name]) => Object.values<string>(deliveryHeader).includes(name))
      expect({ ...headerTexts(encodeDelivery(decoded.value)) }).toEqual(Object.fromEntries(own))
    }
  })

  test('rejected headers: valid and decoded', () => {
    const [plain, cut] = sampleFile('rejected') as Record<string, string>[]
    expect(decodeRejected({ headers: headerMap(Object.entries(plain ?? {})) })).toEqual({
      ok: true,
      value: {
        code: 'missing-type',
        reason: 'the event has no type',
        topic: 'webhooks.events',
        partition: 0,
        offset: 7,
        timestampMs: -1,
        truncatedFrom: null,
      },
    })
    expect(decodeRejected({ headers: headerMap(Object.entries(cut ?? {})) })).toMatchObject({
      value: { truncatedFrom: 2_000_000 },
    })
  })
})

test('every property of every schema says what it is, and every schema its version and draft', () => {
  for (const schema of Object.values(schemas)) {
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(schema.title.length * schema.description.length).toBeGreaterThan(0)
    const shapes = 'oneOf' in schema ? (schema.oneOf as Shape[]) : [schema as unknown as Shape]
    for (const shape of shapes) {
      const versions = ['v', 'ht-v', 'ht-rejected'].filter((name) => Object.hasOwn(shape.properties, name))
      expect(versions).toHaveLength(1)
      expect(shape.required).toContain(versions[0])
    }
  }
})

function sampleFile(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../samples/${name}.json`, import.meta.url), 'utf8'))
}
