import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ConfigSource, loadConfig } from '../../src/config.ts'
import { HooktideError } from '../../src/core/error.ts'
import { type GuardSettings, guardPolicy, strictPolicy } from '../../src/core/guard-policy.ts'
import { Ladder } from '../../src/core/ladder.ts'
import type { RetryPolicy } from '../../src/core/retry-policy.ts'

function problems(source: ConfigSource): readonly string[] {
  try {
    loadConfig(source)
  } catch (error) {
    if (error instanceof HooktideError && error.code === 'config.invalid') return error.details
    throw error
  }
  return []
}

describe('layers', () => {
  const text = 'kafka:\n  brokers: [file:1]\n  clientId: from-file\nhttp:\n  totalTimeout: 10s\n'

  test('environment over file over defaults, overrides over all', () => {
    const env = { HOOKTIDE_KAFKA_CLIENT_ID: 'from-env', HOOKTIDE_HTTP_TOTAL_TIMEOUT: '9s' }
    const { config } = loadConfig({ text, env, overrides: { http: { totalTimeout: '8s' } } })
    expect(config.kafka).toMatchObject({ brokers: ['file:1'], clientId: 'from-env', groupPrefix: 'hooktide.' })
    expect(config.http.totalTimeoutMs).toBe(8000)
  })

  test('KAFKA_BROKERS is short for HOOKTIDE_KAFKA_BROKERS, which wins', () => {
    expect(loadConfig({ text, env: { KAFKA_BROKERS: 'a:1, b:2' } }).config.kafka.brokers).toEqual(['a:1', 'b:2'])
    const both = { KAFKA_BROKERS: 'a:1', HOOKTIDE_KAFKA_BROKERS: '[::1]:9092' }
    expect(loadConfig({ env: both }).config.kafka.brokers).toEqual(['[::1]:9092'])
    expect(loadConfig({ text, env: { KAFKA_BROKERS: '' } }).config.kafka.brokers).toEqual(['file:1'])
  })

  test('every kind of value can come from the environment', () => {
    const { config } = loadConfig({
      env: {
        HOOKTIDE_HTTP_ALLOW_HTTP: 'true',
        HOOKTIDE_HTTP_ALLOW_PRIVATE: '127.0.0.0/8,::1,localhost',
        HOOKTIDE_DELIVERER_RETRY_SHARE: '0.5',
        HOOKTIDE_ROUTER_MAX_EVENT_BYTES: '100000',
        HOOKTIDE_TOPICS_TIERS: '[{name: retry-10s, delay: 10s}, {name: retry-5m, delay: 5m}]',
        HOOKTIDE_TOPICS_REPLICATION: '',
        HOOKTIDE_OBSERVE_LEVEL: 'debug',
        HOOKTIDE_TOPICS_PREFIX: '',
      },
    })
    expect(config.http.allowHttp).toBe(true)
    expect(config.http.allowPrivate).toEqual(['127.0.0.0/8', '::1', 'localhost'])
    expect(config.deliverer.retryShare).toBe(0.5)
    expect(config.router.maxEventBytes).toBe(100_000)
    expect(config.topics).toMatchObject({
      tiers: [
        { name: 'retry-10s', delayMs: 10_000 },
        { name: 'retry-5m', delayMs: 300_000 },
      ],
      replication: null,
      prefix: '',
    })
    expect(config.observe.level).toBe('debug')
  })

  test('an empty file, or one of comments, is the defaults', () => {
    expect(loadConfig({ text: '' }).config).toEqual(loadConfig({ text: '# nothing\n' }).config)
  })

  test('the configuration is frozen to the ground', () => {
    const { config } = loadConfig()
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
    expect(frozen(config)).toBe(true)
  })
})

test('every problem is told at once, with field, value and remedy', () => {
  const text = `
kafka: {broker: [x], sasl: {passwordRef: hunter2}}
retry: 5
http: {connectTimeout: 3, allowPrivate: [10.0.0.0/33], allowHttp: yes please}
topics: {lanes: 1.5, tiers: [{name: a, delay: fast}]}
observe: {level: loud}
colour: red
`
  const found = problems({ text, path: 'my.yaml', env: { HOOKTIDE_ROUTER_MAX_EVENT_BYTES: '3TB' } })
  expect(found.toSorted()).toEqual([
    'HOOKTIDE_ROUTER_MAX_EVENT_BYTES ("3TB"): is not a size; write bytes or a size (256KiB, 64MiB) from 1KiB to 900KiB',
    'colour: is not a known key; known here: kafka, topics, router, deliverer, subscriptions, objects, operationalEvents, retry, http, endpoints, secrets, state, api, observe, shutdown',
    'http.allowHttp ("yes please"): is not true or false; write true or false',
    'http.allowPrivate (["10.0.0.0/33"]): has a malformed item "10.0.0.0/33"; write addresses, CIDR blocks or host names, e.g. 127.0.0.0/8,localhost,*.svc',
    'http.connectTimeout (3): has no unit; write a number with its unit (250ms, 10s, 5m, 2h) from 50ms to 1m',
    'kafka.broker: is not a known key; did you mean brokers?',
    'kafka.sasl.passwordRef (***): is malformed; write a reference, env:NAME or file:PATH, never the secret itself',
    'observe.level ("loud"): is not one of the known values; write one of debug, info, warn, error',
    'retry (5): is not a group of keys; write keys below it: maxAttempts, base, factor, cap, retryAfterCap, maxAge',
    'topics.lanes (1.5): is not a whole number; write a whole number from 1 to 1000',
    'topics.tiers ([{"name":"a","delay":"fast"}]): tier a has no usable delay; write a list of {name, delay}, e.g. [{name: retry-10s, delay: 10s}], delays from 100ms to 7d',
  ])
})

test('a password put where its reference belongs is never printed', () => {
  const found = problems({
    env: { HOOKTIDE_KAFKA_SASL_PASSWORD_REF: 'hunter2', HOOKTIDE_SECRETS_MASTER_KEY_REF: 'k1:hunter2' },
  })
  expect(found).toHaveLength(2)
  expect(found.join()).not.toContain('hunter2')
  const { config } = loadConfig({ overrides: { secrets: { masterKeyRef: 'env:M' } }, env: { M: 'hunter2' } })
  expect(inspect(config, { depth: 9 }) + JSON.stringify(config)).not.toContain('hunter2')
})

test.each([
  ['not YAML', { text: 'a: [', path: 'x.yaml' }, 'x.yaml: is not YAML'],
  ['a list', { text: '- 1' }, 'is not a group of keys'],
  [
    'a key written with its unit in the name',
    { text: 'http: {connectTimeoutMs: 3000}' },
    'did you mean connectTimeout?',
  ],
  ['a key named like a property of objects', { text: 'constructor: 1' }, 'constructor: is not a known key'],
  ['null where a value is needed', { text: 'topics: {lanes: null}' }, 'topics.lanes (null)'],
  ['the same broker twice', { text: 'kafka: {brokers: [a:1, a:1]}' }, 'holds the same item twice'],
  ['a broker without a port', { env: { KAFKA_BROKERS: 'a' } }, 'HOOKTIDE_KAFKA_BROKERS ("a"): has a malformed item'],
] as const)('%s is one clear problem', (_, source, problem) => {
  const found = problems(source)
  expect(found).toHaveLength(1)
  expect(found[0]).toContain(problem)
})

test('a file that is not there is a configuration error with a remedy', () => {
  expect(() => loadConfig({ path: '/nonexistent/hooktide.yaml' })).toThrow(
    expect.objectContaining({ code: 'config.invalid', remedy: expect.stringContaining('readable') }),
  )
})

test('variables nobody knows are warned of, not refused: Kubernetes sets HOOKTIDE_PORT for a service of that name', () => {
  const env = {
    HOOKTIDE_PORT: 'tcp://10.0.0.1:9400',
    HOOKTIDE_KAFKA_BROKER: 'x',
    HOOKTIDE_SECRET_A: 'x',
    HOOKTIDE_CONFIG: 'a.yaml',
    HOOKTIDE_BROKER: 'local',
    PATH: '/bin',
  }
  const { warnings } = loadConfig({ env })
  expect(warnings).toHaveLength(2)
  expect(warnings[1]).toContain('did you mean HOOKTIDE_KAFKA_BROKERS?')
})

test('any tree is a configuration or a list of problems, never another exception', () => {
  const key = fc.constantFrom(
    'kafka',
    'topics',
    'http',
    'retry',
    'tiers',
    'brokers',
    'base',
    '__proto__',
    'ssl',
    'delay',
  )
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom('10s', '1KiB', 7),
      fc.dictionary(key, tie('tree')),
      fc.array(tie('tree'), { maxLength: 2 }),
    ),
  }))
  fc.assert(
    fc.property(tree, (value) => {
      const found = problems({ text: JSON.stringify(value) })
      expect(found.every((line) => line.length > 10)).toBe(true)
    }),
  )
})

test('groups of the configuration fit the parts that take them', () => {
  const { config } = loadConfig()
  const policy: RetryPolicy = config.retry
  const guard: GuardSettings = config.http
  const ladder = new Ladder(config.topics.tiers, 0)
  expect(guardPolicy(guard)).toEqual({ ok: true, value: strictPolicy })
  expect(ladder.pick(policy.capMs)).toBe(4)
})
