import type { Config } from '../../src/config.ts'
import { loadConfig } from '../../src/config.ts'

/** Where workers find the signing secret of a run. */
export const secretName = 'HOOKTIDE_SECRET_CHAOS'

export const sessionMs = 9_000
export const lanes = 6

/**
 * A topology of the round's own, quick in everything: short tiers, small commit intervals, the shortest session that
 * still holds a POST. In the shape of the configuration file.
 */
export function overridesOf(prefix: string, brokers: string, userAgent: string): object {
  return {
    kafka: {
      brokers: brokers.split(','),
      clientId: userAgent,
      groupPrefix: prefix,
      sessionTimeout: `${sessionMs}ms`,
      requestTimeout: '5s',
    },
    topics: {
      prefix,
      events: [`${prefix}events`],
      lanes,
      tiers: [
        { name: 'retry-300ms', delay: '300ms' },
        { name: 'retry-1s', delay: '1s' },
        { name: 'retry-3s', delay: '3s' },
      ],
    },
    router: { commitEvery: '500ms' },
    deliverer: {
      commitEvery: '200ms',
      commitMovesEvery: '50ms',
      perOrigin: 256,
      drain: '6s',
      // An endpoint of these rounds fails often; a circuit that opens would hide what the rounds are about.
      circuit: { failures: 0, failureRate: 1, minSamples: 1_000_000 },
    },
    retry: { maxAttempts: 6, base: '300ms', factor: 2, cap: '3s', retryAfterCap: '5s' },
    http: {
      connectTimeout: '1s',
      totalTimeout: '2s',
      allowHttp: true,
      allowPrivate: ['127.0.0.1'],
      maxSocketsPerOrigin: 256,
      userAgent,
    },
    shutdown: { drain: '5s', gracePeriod: '30s' },
    observe: { port: 0 },
  }
}

export function configOf(prefix: string, brokers: string): Config {
  return loadConfig({ overrides: overridesOf(prefix, brokers, 'chaos-driver') }).config
}
