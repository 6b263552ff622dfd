import type { TLSSocket } from 'node:tls'
import { loggableUrl } from '../core/attempt.ts'
import { type EndpointCheck, type EndpointConnection, judgeEndpoint } from '../core/endpoint-check.ts'

import type { GuardPolicy } from '../core/guard-policy.ts'
import { checkUrl } from '../core/url-rules.ts'
import { type DialOptions, dial } from './dial.ts'
import type { Resolver } from './resolver.ts'

/** The URL's rules, then every answer of one lookup. Nothing is connected to. Never rejects. */
export async function checkEndpoint(url: string, policy: GuardPolicy, resolver: Resolver): Promise<EndpointCheck> {
  const target = checkUrl(url, policy)
  if (!target.ok || target.value.literal) return judgeEndpoint(url, null, policy)
  return new Promise((resolve) => {
    resolver.lookup(target.value.hostname, (error, answers) => {
      const check = judgeEndpoint(url, error === null ? answers : [], policy)
      resolve(error === null ? check : { ...check, reason: error.message })
    })
  })
}

/** What an attempt's connection would come to, TLS handshake included; it is closed at once. Never rejects. */
export function tryConnection(url: string, options: DialOptions): Promise<EndpointConnection> {
  const target = checkUrl(url, options.policy)
  if (!target.ok) return Promise.resolve({ ok: false, detail: `blocked: ${target.reason}` })
  return new Promise((resolve) => {
    dial(target.value, options, (error, socket) => {
      if (error !== null) {
        const hint = tlsHint(error.message)
        return resolve({ ok: false, detail: `${error.class}: ${error.message}${hint === null ? '' : ` (${hint})`}` })
      }
      const detail = target.value.secure ? describeTls(socket as TLSSocket) : `connected to ${loggableUrl(url)}, no TLS`
      socket?.on('error', () => {}).destroy()
      resolve({ ok: true, detail })
    })
  })
}

function describeTls(socket: TLSSocket): string {
  const { subject, issuer, valid_to: until } = socket.getPeerCertificate()
  const name = (who: { CN?: string | string[]; O?: string | string[] } | undefined) => String(who?.CN ?? who?.O ?? '?')
  const end = Number.isNaN(Date.parse(until)) ? until : new Date(Date.parse(until)).toISOString().slice(0, 10)
  return `${socket.getProtocol()}, certificate of ${name(subject)} by ${name(issuer)}, until ${end}`
}

/** OpenSSL's words for what an endpoint's owner has to mend. */
function tlsHint(message: string): string | null {
  if (/UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER/.test(message))
    return 'its chain is incomplete, or of an authority that is not trusted here: the endpoint must send its intermediate certificates'
  if (/SELF_SIGNED/.test(message)) return 'signed by itself or by a private authority'
  if (/CERT_HAS_EXPIRED/.test(message)) return 'it must be renewed'
  if (/CERT_NOT_YET_VALID/.test(message)) return 'it is not valid yet; check its clock and this one'
  if (/ALTNAME/.test(message)) return 'it is for other names'
  if (/wrong version number|packet length|http request/i.test(message)) return 'no TLS is spoken on this port'
  return null
}
