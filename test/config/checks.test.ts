import { describe, expect, test } from 'vitest'
import { worstHops } from '../../src/config/checks.ts'
import { leaseMs, loadConfig } from '../../src/config.ts'
import { Ladder } from '../../src/core/ladder.ts'

const tier = (delay: string) => ({ name: `retry-${delay}`, delay })

describe('stops the start', () => {
  test.each([
    ['a shortest tier that leaves too much to memory', { topics: { tiers: [tier('2m')] } }, 'topics.tiers (retry-2m)'],
    ['a ladder too short for the policy', { topics: { tiers: [tier('10s')] } }, 'can not serve a delay of 2h'],
    ['tiers out of order', { topics: { tiers: [tier('1m'), tier('10s'), tier('1h')] } }, 'is not longer than retry-1m'],
    [
      'two tiers of one name',
      {
        topics: {
          tiers: [
            { name: 'a', delay: '1m' },
            { name: 'a', delay: '1h' },
          ],
        },
      },
      'names a tier twice',
    ],
    ['base above cap', { retry: { base: '3h' } }, 'retry.cap (2h): is below retry.base (3h)'],
    ['connect above total', { http: { connectTimeout: '20s' } }, 'http.connectTimeout (20s)'],
    ['a drain the platform cuts off', { shutdown: { drain: '40s' } }, 'shutdown.gracePeriod (45s): is not above 56s'],
    ['a drain beyond the lease', { deliverer: { drain: '19s' } }, 'deliverer.drain (19s): is above 18s'],
    ['a session too short for a POST', { kafka: { sessionTimeout: '18s' } }, 'kafka.sessionTimeout (18s)'],
    ['events read from our own topic', { topics: { events: ['webhooks.dead'] } }, 'topics.events (webhooks.dead)'],
    ['events read from a tier', { topics: { prefix: '', events: ['retry-10s'] } }, 'topics.events (retry-10s)'],
    [
      'a tier named like another topic',
      { topics: { tiers: [{ name: 'dead', delay: '1m' }, tier('1h')] } },
      'topics.tiers (dead)',
    ],
    ['a certificate without its key', { kafka: { ssl: { enabled: true, cert: 'c.pem' } } }, 'kafka.ssl.key'],
    ['TLS files without TLS', { kafka: { ssl: { ca: 'ca.pem' } } }, 'kafka.ssl.enabled (false)'],
    ['SASL without a user', { kafka: { sasl: { mechanism: 'plain', passwordRef: 'env:P' } } }, 'kafka.sasl.username'],
    ['a user without SASL', { kafka: { sasl: { username: 'u' } } }, 'kafka.sasl.mechanism'],
    ['a file reference without a directory', { secrets: { masterKeyRef: 'file:m' } }, 'secrets.masterKeyRef (***)'],
  ])('%s', (_, overrides, problem) => {
    expect(() => loadConfig({ overrides })).toThrow(
      expect.objectContaining({ code: 'config.invalid', details: [expect.stringContaining(problem)] }),
    )
  })
})

describe('is legal, with a warning', () => {
  test.each([
    ['a tier no delay reaches', { retry: { maxAttempts: 3, retryAfterCap: '1m' } }, 'retry-5m is never reached'],
    ['a coarse ladder', { topics: { tiers: [tier('10s'), tier('5m')] } }, 'up to 53 moves'],
    ['no retries', { retry: { maxAttempts: 1 } }, 'nothing is ever retried'],
    ['a drain shorter than a POST', { shutdown: { drain: '5s' } }, 'shutdown.drain (5s) is shorter'],
    ['a rebalance drain shorter than a POST', { deliverer: { drain: '5s' } }, 'deliverer.drain (5s) is shorter'],
    ['PLAIN without TLS', { kafka: { sasl: { mechanism: 'plain', username: 'u', passwordRef: 'env:P' } } }, 'in clear'],
    ['a cap that limits nothing', { deliverer: { perSubscription: 1000 } }, 'limits nothing'],
    ['fewer sockets than POSTs', { http: { maxSocketsPerOrigin: 8 } }, 'wait for a socket'],
    ['metadata services', { http: { allowMetadata: true } }, 'metadata'],
    [
      'a buffer bound above that of the process',
      { deliverer: { maxBufferBytes: '8MiB', bufferPerLane: { bytes: '9MiB' } } },
      'limits nothing',
    ],
    ['a moves bound above the commit bound', { deliverer: { commitMovesEvery: '5s' } }, 'never waited for'],
  ])('%s', (_, overrides, warning) => {
    const { warnings } = loadConfig({ overrides })
    expect(warnings.join('\n')).toContain(warning)
  })
})

test('the lease rule holds for the defaults: an open POST ends and is committed before anyone else may start it', () => {
  const { config } = loadConfig()
  const { shutdown, http, deliverer, kafka } = config
  expect(shutdown.gracePeriodMs).toBeGreaterThan(shutdown.drainMs + http.totalTimeoutMs + 3000)
  expect(shutdown.drainMs).toBeGreaterThan(http.totalTimeoutMs)
  expect(deliverer.drainMs).toBeGreaterThan(http.totalTimeoutMs)
  expect(deliverer.drainMs).toBeLessThanOrEqual(kafka.sessionTimeoutMs - 2000)
  expect(leaseMs(config) + http.totalTimeoutMs).toBeLessThan(kafka.sessionTimeoutMs)
})

test('the bound on moves is the worst of all delays the ladder really takes', () => {
  const tiers = [
    { name: 'a', delayMs: 10 },
    { name: 'b', delayMs: 60 },
    { name: 'c', delayMs: 300 },
  ]
  const ladder = new Ladder(tiers, 0)
  for (const longest of [5, 10, 59, 60, 299, 650, 1000]) {
    let worst = 0
    for (let delay = 0; delay <= longest; delay++) worst = Math.max(worst, ladder.route(delay).length)
    expect(worstHops(tiers, longest)).toBeGreaterThanOrEqual(worst)
    expect(worstHops(tiers, longest)).toBeLessThanOrEqual(worst + 2)
  }
})
