import { type ApiServer, startApi } from '../api/server.ts'
import { TokenSource } from '../api/token-source.ts'
import { version } from '../cli/version.ts'
import { HooktideError } from '../core/error.ts'
import { listenAddress } from '../core/listen-address.ts'
import { ControlStore } from '../operations/control-store.ts'
import { directOperations } from '../operations/direct.ts'
import { Ingest } from '../operations/ingest.ts'
import { topicNames } from '../operations/names.ts'
import { noProgress } from '../operations/progress.ts'
import { SubscriptionStore } from '../operations/subscription-store.ts'
import type { Kafka, TopicAdmin } from '../ports.ts'
import { createEndpointTools } from './endpoint-tools.ts'
import { fetchText } from './fetch-text.ts'
import { openObjects } from './object-store.ts'
import { createSecretTools } from './secret-tools.ts'
import type { ServiceOptions } from './service-options.ts'
import { createStateTools } from './state-tools.ts'

/** A scan or a redrive ends after this and says where it goes on: no answer should take longer. */
const patienceMs = 8_000

export interface ApiRole {
  readonly port: number
  readonly routes: ApiServer['routes']
  close(): Promise<void>
}

/** Serves the HTTP API in this process. Rejects `config.invalid` when it can't. */
export async function startApiRole(options: ServiceOptions, kafka: Kafka, admin: TopicAdmin): Promise<ApiRole> {
  const { config, env, clock, observer } = options
  const listen = config.api.listen === null ? null : listenAddress(config.api.listen)
  if (listen === null) {
    throw new HooktideError('config.invalid', 'the role api has nowhere to listen', {
      remedy: 'Set api.listen, e.g. 127.0.0.1:9401.',
    })
  }
  const names = topicNames(config)
  const ending = new AbortController()
  const subscriptions = new SubscriptionStore(kafka, names.subscriptions, clock, true)
  const control = new ControlStore(kafka, names.control, clock, true)
  const objects = openObjects(config, env, clock)
  const ingest = new Ingest({ kafka, config, objects, clock })
  const state = config.state.enabled ? createStateTools(config, env, { clock, observer }) : null
  const parts = {
    ...{ config, clock, kafka, admin, subscriptions, control, patienceMs },
    secrets: createSecretTools(env, clock),
    endpoints: createEndpointTools(env, clock),
    state: state?.store ?? null,
    progress: noProgress,
    signal: ending.signal,
    fetchText: (url: string, timeoutMs: number) => fetchText(clock, url, timeoutMs),
  }
  const closeParts = async () => {
    await Promise.allSettled([subscriptions.close(), control.close(), ingest.close(), state?.close()])
  }
  try {
    const { auth, tokens: configured, tokensFile: path } = config.api
    const server = await startApi({
      ...listen,
      tokens: auth === 'off' ? null : new TokenSource({ configured, path, clock, observer }),
      operations: (caller) => directOperations(parts, caller),
      ingest,
      clock,
      observer,
      maxEventBytes: config.router.maxEventBytes,
      maxLargeBytes: objects === null ? null : config.objects.maxBytes,
      version,
    })
    observer.log('info', 'api.listening', { host: listen.host, port: server.port, auth })
    return {
      port: server.port,
      routes: server.routes,
      async close() {
        // Long work ends with what it has, and is answered.
        ending.abort()
        await server.close()
        await closeParts()
      },
    }
  } catch (error) {
    await closeParts()
    throw error
  }
}
