import { rootCertificates } from 'node:tls'
import { checkEndpoint, tryConnection } from '../http/check-endpoint.ts'
import { createNetwork } from '../http/network.ts'
import { throughProxy } from '../http/proxy-network.ts'
import { type Resolver, systemResolver } from '../http/resolver.ts'
import type { EndpointTools } from '../operations/tools.ts'
import type { Clock } from '../ports.ts'
import { challengeEndpoint } from './endpoint-challenge.ts'
import { guardOf, senderOptions } from './sender-options.ts'

type Env = Readonly<Record<string, string | undefined>>

/** What commands may ask of endpoints. `given`: for tests, which ask no name server. */
export function createEndpointTools(env: Env, clock: Clock, given?: Resolver): EndpointTools {
  let resolver = given
  return {
    async check(config, url, { connect = false } = {}) {
      const policy = guardOf(config)
      resolver ??= systemResolver(clock)
      const check = await checkEndpoint(url, policy, resolver)
      if (!connect || !check.allowed) return check
      const { proxy } = senderOptions(config, { env, clock })
      const network = createNetwork({ rootCertificates })
      const connection = await tryConnection(url, {
        clock,
        policy,
        resolver,
        network: proxy === undefined ? network : throughProxy(network, proxy),
        connectTimeoutMs: config.http.connectTimeoutMs,
      })
      return { ...check, connection }
    },
    challenge(config, subscription, sealed) {
      resolver ??= systemResolver(clock)
      return challengeEndpoint(config, subscription, sealed, { env, clock, resolver })
    },
  }
}
