import type { OAuth2Client } from '../core/endpoint-settings.ts'
import type { Reply } from '../core/outcome.ts'
import { fail, ok, type Result } from '../core/result.ts'
import type { Secret } from '../core/secret.ts'
import type { HttpSender, PlainRequest } from './sender.ts'

export interface FetchedToken {
  readonly token: string
  readonly lifetimeMs: number
}

const keptBytes = 32_768
/** What a server that does not say it (RFC 6749 §5.1 lets it) is taken to mean, and the most that is believed. */
const defaultLifetimeS = 300
const maxLifetimeS = 86_400

/** One token by the client credentials grant, over a guarded connection. Never rejects; reasons hold nothing of the answer but its error code. */
export async function fetchToken(
  sender: HttpSender,
  client: OAuth2Client,
  secret: Secret,
): Promise<Result<FetchedToken>> {
  const reply = await sender.request(tokenRequest(client, secret))
  return readToken(reply)
}

/** RFC 6749 §4.4.2 and §2.3.1 (id and secret are form-encoded before they are joined). */
export function tokenRequest(client: OAuth2Client, secret: Secret): PlainRequest {
  const form = new URLSearchParams({ grant_type: 'client_credentials' })
  if (client.scope !== undefined) form.set('scope', client.scope)
  if (client.audience !== undefined) form.set('audience', client.audience)
  const headers = ['content-type', 'application/x-www-form-urlencoded', 'accept', 'application/json']
  if (client.clientAuth === 'post') {
    form.set('client_id', client.clientId)
    form.set('client_secret', secret.reveal())
  } else {
    const pair = `${formEncoded(client.clientId)}:${formEncoded(secret.reveal())}`
    headers.push('authorization', `Basic ${Buffer.from(pair).toString('base64')}`)
  }
  return { url: client.tokenUrl, headers, body: Buffer.from(form.toString()), timeoutMs: undefined, keptBytes }
}

export function readToken(reply: Reply): Result<FetchedToken> {
  if (reply.t === 'interrupted') return fail(`interrupted: ${reply.detail}`)
  if (reply.t === 'failure') return fail(`${reply.class}: ${reply.detail}`)
  let body: Record<string, unknown> = {}
  try {
    const parsed: unknown = JSON.parse(reply.excerpt.toString('utf8'))
    if (typeof parsed === 'object' && parsed !== null) body = parsed as Record<string, unknown>
  } catch {
    // No JSON: the status says what there is to say.
  }
  if (reply.status !== 200) {
    const { error } = body
    const code = typeof error === 'string' && /^[a-z_]{1,64}$/.test(error) ? ` (${error})` : ''
    return fail(`the token server answered ${reply.status}${code}`)
  }
  const { access_token: token, token_type: type, expires_in: expiresIn } = body
  // RFC 6750 §2.1: what an Authorization header can carry.
  if (typeof token !== 'string' || !/^[A-Za-z0-9\-._~+/]+=*$/.test(token))
    return fail('the answer of the token server holds no usable access_token')
  if (typeof type === 'string' && type.toLowerCase() !== 'bearer')
    return fail('the token server gave a token that is no bearer token')
  const seconds = Number(expiresIn)
  const lifetimeS = expiresIn !== undefined && seconds > 0 ? Math.min(seconds, maxLifetimeS) : defaultLifetimeS
  return ok({ token, lifetimeMs: lifetimeS * 1000 })
}

function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}
