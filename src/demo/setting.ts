import type { Env } from '../cli/deps.ts'
import { type LoadedConfig, loadConfig } from '../config.ts'

/** Where the demo's signing secret is found; made for the run, in no file. */
export const secretName = 'HOOKTIDE_SECRET_DEMO'

export const maxAttempts = 10

/**
 * A topology of the run's own, so that what an earlier run left behind on a broker is in nobody's way, with delays short
 * enough to watch. How the broker is reached comes from the environment, nothing else.
 */
export function demoConfig(run: string, brokers: string, env: Env): LoadedConfig {
  const prefix = `demo.${run}.`
  const access = Object.entries(env).filter(([name]) => /^HOOKTIDE_(KAFKA_(SSL|SASL)|SECRETS)_/.test(name))
  return loadConfig({
    env: Object.fromEntries(access),
    overrides: {
      kafka: { brokers: brokers.split(','), clientId: 'hooktide-demo', groupPrefix: prefix, sessionTimeout: '45s' },
      topics: {
        prefix,
        events: [`${prefix}events`],
        lanes: 6,
        tiers: [
          { name: 'retry-500ms', delay: '500ms' },
          { name: 'retry-2s', delay: '2s' },
          { name: 'retry-5s', delay: '5s' },
        ],
      },
      deliverer: { commitEvery: '250ms', commitMovesEvery: '50ms' },
      retry: { maxAttempts, base: '1s', factor: 2, cap: '6s', retryAfterCap: '30s' },
      // Long enough for a machine that is busy with other things: a time-out here would say nothing about Hooktide.
      http: { allowHttp: true, allowPrivate: ['127.0.0.1'], totalTimeout: '30s', connectTimeout: '10s' },
      shutdown: { gracePeriod: '60s' },
      observe: { port: 0 },
    },
  })
}
