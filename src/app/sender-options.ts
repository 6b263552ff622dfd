import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import { type GuardPolicy, guardPolicy } from '../core/guard-policy.ts'
import type { EgressProxy } from '../http/proxy-network.ts'
import type { SenderOptions } from '../http/sender.ts'
import type { Clock } from '../ports.ts'
import { References } from '../secrets/references.ts'

type Edge = { readonly env: Readonly<Record<string, string | undefined>>; readonly clock: Clock }

/** The sender as the configuration wants it, for the service and for commands alike. Throws `config.invalid` or `secret.unavailable`. */
export function senderOptions(config: Config, { env, clock }: Edge): SenderOptions {
  const { http } = config
  const references = new References({ env, directory: config.secrets.directory, clock })
  const proxy = egressProxy(config, references)
  return {
    clock,
    policy: guardOf(config),
    userAgent: http.userAgentSuffix === null ? http.userAgent : `${http.userAgent} ${http.userAgentSuffix}`,
    connectTimeoutMs: http.connectTimeoutMs,
    totalTimeoutMs: http.totalTimeoutMs,
    maxSocketsPerOrigin: http.maxSocketsPerOrigin,
    ...(proxy === null ? {} : { proxy }),
  }
}

export function guardOf(config: Config): GuardPolicy {
  const policy = guardPolicy(config.http)
  if (!policy.ok) throw new HooktideError('config.invalid', `http: ${policy.reason}`)
  return policy.value
}

function egressProxy(config: Config, references: References): EgressProxy | null {
  const { url, credentialsRef } = config.http.proxy
  if (url === null) return null
  const { hostname, port } = new URL(url)
  // A URL parser leaves out the port that is the scheme's own.
  const place = { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 80 : Number(port) }
  if (credentialsRef === null) return place
  const text = references.text(credentialsRef)
  if (!text.ok) {
    throw new HooktideError('secret.unavailable', `http.proxy.credentialsRef: ${text.reason}`, {
      remedy: 'Make the reference readable, or correct it. Its text is user:password.',
    })
  }
  return { ...place, authorization: `Basic ${Buffer.from(text.value.reveal()).toString('base64')}` }
}
