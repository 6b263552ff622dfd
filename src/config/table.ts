import { isIP } from 'node:net'
import { guardPolicy } from '../core/guard-policy.ts'
import {
  duration,
  flag,
  integer,
  number,
  oneOf,
  optional,
  reference,
  size,
  text,
  tiers,
  type Values,
  words,
} from './fields.ts'
import { apiTokens } from './token-field.ts'

const topic = /^[A-Za-z0-9._-]{1,200}$/
const path = /^\P{Cc}+$/u
const name = /^[A-Za-z0-9._-]{1,100}$/

/**
 * Every key there is, with its kind, bounds and default: the file, the environment (`HOOKTIDE_` and the path in capitals)
 * and the type `Config` follow from it. `config/hooktide.default.yaml` explains the keys and is held to this by a test.
 */
export const table = {
  kafka: {
    brokers: words(['localhost:9092'], isBroker, 'write host:port, several as a list, e.g. kafka-1:9092,kafka-2:9092'),
    clientId: text('hooktide', name, 'use letters, digits, ".", "_" and "-"'),
    groupPrefix: text('hooktide.', name, 'use letters, digits, ".", "_" and "-"'),
    ssl: {
      enabled: flag(false),
      ca: optional(text('', path, 'write the path of a PEM file')),
      cert: optional(text('', path, 'write the path of a PEM file')),
      key: optional(text('', path, 'write the path of a PEM file')),
    },
    sasl: {
      mechanism: optional(oneOf('plain', ['plain', 'scram-sha-256', 'scram-sha-512'])),
      username: optional(text('', path, 'write the user name')),
      passwordRef: reference(),
    },
    connectTimeout: duration('3s', '100ms', '2m'),
    requestTimeout: duration('15s', '1s', '5m'),
    sessionTimeout: duration('20s', '6s', '5m'),
  },
  topics: {
    prefix: text('webhooks.', /^[A-Za-z0-9._-]{0,100}$/, 'use letters, digits, ".", "_" and "-"'),
    events: words(['webhooks.events'], (word) => topic.test(word), 'write topic names'),
    lanes: integer(12, 1, 1000),
    tiers: tiers([
      { name: 'retry-10s', delay: '10s' },
      { name: 'retry-1m', delay: '1m' },
      { name: 'retry-5m', delay: '5m' },
      { name: 'retry-30m', delay: '30m' },
      { name: 'retry-2h', delay: '2h' },
    ]),
    replication: optional(integer(3, 1, 15)),
  },
  router: {
    maxEventBytes: size('256KiB', '1KiB', '900KiB'),
    maxHeaders: integer(64, 8, 1000),
    commitEvery: duration('1s', '50ms', '1m'),
  },
  deliverer: {
    maxInFlight: integer(256, 1, 100_000),
    maxInFlightBytes: size('64MiB', '1MiB', '16GiB'),
    perSubscription: integer(32, 1, 100_000),
    perOrigin: integer(64, 1, 100_000),
    perOriginPerSecond: optional(number(100, 0.01, 1_000_000)),
    retryShare: number(0.3, 0.01, 1),
    commitEvery: duration('1s', '50ms', '1m'),
    commitMovesEvery: duration('0', '0', '1m'),
    commitRecords: integer(500, 1, 10_000),
    spanOffsets: integer(1_048_576, 64, 1_048_576),
    bufferPerLane: {
      records: integer(1000, 10, 1_000_000),
      bytes: size('8MiB', '1MiB', '1GiB'),
    },
    circuit: {
      failures: integer(10, 0, 100_000),
      failureRate: number(0.9, 0.01, 1),
      minSamples: integer(50, 1, 1_000_000),
      window: duration('30s', '1s', '1h'),
      open: duration('10s', '100ms', '1h'),
      maxOpen: duration('5m', '100ms', '1d'),
    },
    deadCredit: integer(32, 1, 1_000_000),
    maxBufferBytes: size('64MiB', '8MiB', '64GiB'),
    drain: duration('15s', '0', '10m'),
  },
  subscriptions: {
    disableAfter: duration('5d', '0', '365d'),
    failingAfter: duration('1h', '1s', '30d'),
  },
  objects: {
    directory: optional(text('', path, 'write the path of a directory that all processes share')),
    s3: {
      bucket: optional(text('', /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'write the name of a bucket')),
      prefix: text('', /^([A-Za-z0-9._-]+\/)*$/, 'end it with a /, e.g. hooktide/'),
      region: text('us-east-1', /^[a-z0-9-]{1,40}$/, 'write a region, e.g. eu-central-1'),
      endpoint: optional(text('', /^https?:\/\/[^\s/]+\/?$/, 'write http(s)://host:port')),
      accessKeyIdRef: reference(),
      secretAccessKeyRef: reference(),
    },
    maxBytes: size('16MiB', '256KiB', '256MiB'),
    maxOpenBytes: size('64MiB', '1MiB', '16GiB'),
    fetchTimeout: duration('3s', '10ms', '1m'),
  },
  operationalEvents: {
    enabled: flag(true),
    typePrefix: text(
      'hooktide.',
      /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,60}\.$/,
      'write a prefix that ends with a dot, e.g. hooktide.',
    ),
  },
  retry: {
    maxAttempts: integer(8, 1, 100),
    base: duration('10s', '1ms', '1d'),
    factor: number(4, 1, 100),
    cap: duration('2h', '1ms', '7d'),
    retryAfterCap: duration('2h', '0', '7d'),
    maxAge: duration('0', '0', '3650d'),
  },
  http: {
    connectTimeout: duration('3s', '50ms', '1m'),
    totalTimeout: duration('13s', '100ms', '5m'),
    allowHttp: flag(false),
    allowPrivate: words(
      [],
      isAllowed,
      'write addresses, CIDR blocks or host names, e.g. 127.0.0.0/8,localhost,*.svc',
      0,
    ),
    deny: words([], isDenied, 'write addresses or CIDR blocks, e.g. 203.0.113.0/24', 0),
    allowMetadata: flag(false),
    allowNat64: flag(false),
    maxSocketsPerOrigin: integer(64, 1, 10_000),
    userAgent: text('Hooktide', /^[\u0020-\u007e]{1,200}$/, 'use visible ASCII, at most 200 characters'),
    userAgentSuffix: optional(
      text('', /^[\u0021-\u007e][\u0020-\u007e]{0,199}$/, 'use visible ASCII, at most 200 characters'),
    ),
    proxy: {
      url: optional(
        text(
          '',
          /^http:\/\/[A-Za-z0-9._-]+:\d{1,5}\/?$|^http:\/\/\[[0-9A-Fa-f:.]+\]:\d{1,5}\/?$/,
          'write http://host:port',
        ),
      ),
      credentialsRef: reference(),
    },
  },
  endpoints: {
    challenge: oneOf('off', ['off', 'on']),
  },
  secrets: {
    directory: optional(text('', path, 'write the path of a directory')),
    masterKeyRef: reference(),
  },
  state: {
    enabled: flag(false),
    store: oneOf('sqlite', ['sqlite', 'postgres']),
    path: text('.hooktide/state', path, 'write the path of a folder'),
    urlRef: reference(),
    schema: text('hooktide_state', /^[a-z_][a-z0-9_]{0,40}$/, 'use a-z, digits and "_", at most 41 characters'),
  },
  api: {
    listen: optional(
      text('', /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/, 'write host:port, e.g. 127.0.0.1:9401'),
    ),
    auth: oneOf('required', ['required', 'off']),
    tokens: apiTokens(),
    tokensFile: optional(text('', path, 'write the path of a YAML file')),
  },
  observe: {
    level: oneOf('info', ['debug', 'info', 'warn', 'error']),
    successLines: integer(100, 0, 1_000_000),
    host: text('127.0.0.1', /^[A-Za-z0-9.:_-]{1,253}$/, 'write an address, e.g. 0.0.0.0'),
    port: integer(9400, 0, 65_535),
    worstSubscriptions: integer(20, 0, 100),
    traces: {
      url: optional(text('', /^https?:\/\/[^\s@?#]+$/, 'write http(s)://host:port/v1/traces')),
      authorizationRef: reference(),
      sampleRatio: number(1, 0, 1),
    },
  },
  shutdown: {
    drain: duration('15s', '0', '1h'),
    gracePeriod: duration('45s', '1s', '2h'),
  },
} as const

export type Config = Values<typeof table>

function isBroker(word: string): boolean {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(word)
  if (match === null || (match[1] !== undefined && isIP(match[1]) !== 6)) return false
  const port = Number(match[3])
  return port > 0 && port < 65_536
}

function isAllowed(word: string): boolean {
  return guardPolicy({ allowPrivate: [word] }).ok
}

function isDenied(word: string): boolean {
  return guardPolicy({ deny: [word] }).ok
}
