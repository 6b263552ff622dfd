import type { EndpointTls, OAuth2Client } from '../core/endpoint-settings.ts'
import type { Result } from '../core/result.ts'
import type { Secret } from '../core/secret.ts'
import { rawHmacKey } from '../core/signature.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Access, Accesses, AccessState, ClientIdentity, Clock, Observer, Secrets, SigningKey } from '../ports.ts'
import { AccessToken } from './access-token.ts'
import { createClientIdentity } from './network.ts'
import type { FetchedToken } from './token-request.ts'

export interface EndpointAccessDeps {
  readonly clock: Clock
  readonly observer: Observer
  readonly secrets: Secrets
  /** Never rejects. */
  fetchToken(client: OAuth2Client, secret: Secret): Promise<Result<FetchedToken>>
}

/** What was made of secrets, for as long as they are the same objects. */
interface Made {
  readonly sources: readonly unknown[]
  readonly state: AccessState
}

const nothing: AccessState = { t: 'ready', access: null }
const sweepAbove = 10_000

/** Credentials of subscriptions, made once per version of the subscription and of each secret behind it. */
export class EndpointAccess implements Accesses {
  readonly #deps: EndpointAccessDeps
  readonly #made = new WeakMap<Subscription, Made>()
  readonly #tokens = new Map<
    string,
    { readonly client: string; readonly secret: Secret; readonly token: AccessToken }
  >()
  readonly #identities = new Map<
    string,
    { readonly sources: readonly Secret[]; readonly made: Result<ClientIdentity> }
  >()
  readonly #listeners: ((subscriptionId: string) => void)[] = []
  #identityCount = 0

  constructor(deps: EndpointAccessDeps) {
    this.#deps = deps
  }

  of(subscription: Subscription): AccessState {
    const { auth, tls, legacySignature } = subscription
    const legacyRef = legacySignature?.secretRef
    if (auth === undefined && tls === undefined && legacyRef === undefined) return nothing
    const { secrets } = this.#deps
    const sources: unknown[] = []
    for (const ref of [
      auth?.basic?.passwordRef ?? auth?.bearer?.tokenRef ?? auth?.oauth2?.clientSecretRef,
      tls?.certRef,
      tls?.keyRef,
      tls?.caRef,
      legacyRef,
    ]) {
      if (ref === undefined) {
        sources.push(null)
        continue
      }
      const secret = secrets.text(ref)
      if (secret === null) return { t: 'missing', class: 'secret', detail: `${shown(ref)} can not be had now` }
      sources.push(secret)
    }
    if (auth?.oauth2 !== undefined) {
      const state = this.#token(subscription, auth.oauth2, sources[0] as Secret).state()
      if (state.t === 'pending') return state
      if (state.t === 'failed')
        return { t: 'missing', class: 'auth', detail: `no access token can be had now: ${state.reason}` }
      sources.push(state.token)
    }
    const known = this.#made.get(subscription)
    if (known?.sources.every((source, i) => source === sources[i])) return known.state
    const state = this.#make(subscription, sources)
    this.#made.set(subscription, { sources, state })
    return state
  }

  refused(subscription: Subscription, access: Access): boolean {
    const entry = this.#tokens.get(subscription.id)
    if (access.token === null || entry === undefined || !entry.token.refused(access.token)) return false
    this.#deps.observer.log('warn', 'token.refused', { subscriptionId: subscription.id })
    return true
  }

  accepted(subscription: Subscription, access: Access): void {
    if (access.token !== null) this.#tokens.get(subscription.id)?.token.accepted(access.token)
  }

  onChange(listener: (subscriptionId: string) => void): void {
    this.#listeners.push(listener)
  }

  #make(subscription: Subscription, sources: readonly unknown[]): AccessState {
    const [credential, cert, key, ca, legacy, token] = sources as [
      Secret | null,
      Secret | null,
      Secret | null,
      Secret | null,
      Secret | null,
      { readonly text: string; readonly header: string } | undefined,
    ]
    const { auth, tls } = subscription
    const confidential: string[] = []
    let authorization: string | null = null
    if (token !== undefined) {
      authorization = token.header
      confidential.push(token.text)
    } else if (credential !== null) {
      const text = credential.reveal()
      confidential.push(text)
      if (auth?.basic === undefined) authorization = `Bearer ${text}`
      else {
        const pair = Buffer.from(`${auth.basic.username}:${text}`).toString('base64')
        confidential.push(pair)
        authorization = `Basic ${pair}`
      }
      if (!/^[\x20-\x7e]+$/.test(authorization))
        return missing(`${shown(auth?.bearer?.tokenRef ?? '')} holds what no header can carry (line breaks, non-ASCII)`)
    }
    let client: ClientIdentity | null = null
    if (tls !== undefined && cert !== null && key !== null) {
      const made = this.#identity(tls, cert, key, ca)
      if (!made.ok) return missing(`${shown(tls.certRef)} and ${shown(tls.keyRef)}: ${made.reason}`)
      client = made.value
    }
    let legacyKey: SigningKey | null = null
    if (legacy !== null) {
      const made = rawHmacKey(legacy)
      if (!made.ok) return missing(`${shown(subscription.legacySignature?.secretRef ?? '')}: ${made.reason}`)
      legacyKey = made.value
      confidential.push(legacy.reveal())
    }
    return { t: 'ready', access: { authorization, client, legacyKey, token: token ?? null, confidential } }
  }

  /** Kept over versions of the subscription that ask for the same token. */
  #token(subscription: Subscription, client: OAuth2Client, secret: Secret): AccessToken {
    const { id } = subscription
    const asked = this.#asked(client)
    const known = this.#tokens.get(id)
    if (known?.client === asked && known.secret === secret) return known.token
    if (this.#tokens.size >= sweepAbove)
      for (const [other, { token }] of this.#tokens) if (token.idle) this.#tokens.delete(other)
    const { clock, observer, fetchToken } = this.#deps
    const fetch = async () => {
      const startMs = clock.mono()
      const result = await fetchToken(client, secret)
      const fields = { subscriptionId: id, ms: Math.round(clock.mono() - startMs) }
      if (result.ok) observer.log('debug', 'token.fetched', fields)
      else observer.log('warn', 'token.unavailable', { ...fields, reason: result.reason })
      return result
    }
    const token = new AccessToken(clock, fetch, () => {
      for (const listener of this.#listeners) listener(id)
    })
    this.#tokens.set(id, { client: asked, secret, token })
    return token
  }

  #asked(client: OAuth2Client): string {
    let text = askedTexts.get(client)
    if (text === undefined) {
      text = JSON.stringify(client)
      askedTexts.set(client, text)
    }
    return text
  }

  #identity(tls: EndpointTls, cert: Secret, key: Secret, ca: Secret | null): Result<ClientIdentity> {
    const name = JSON.stringify([tls.certRef, tls.keyRef, tls.caRef])
    const sources = ca === null ? [cert, key] : [cert, key, ca]
    const known = this.#identities.get(name)
    if (known?.sources.every((source, i) => source === sources[i])) return known.made
    const pem = { cert: cert.reveal(), key: key.reveal(), ca: ca?.reveal() ?? null }
    const made = createClientIdentity(`client-${++this.#identityCount}`, pem)
    this.#identities.delete(name)
    if (this.#identities.size >= sweepAbove) this.#identities.delete(this.#identities.keys().next().value as string)
    this.#identities.set(name, { sources, made })
    return made
  }
}

const askedTexts = new WeakMap<OAuth2Client, string>()

function missing(detail: string): AccessState {
  return { t: 'missing', class: 'secret', detail }
}

/** What is no reference may be a secret. */
function shown(ref: string): string {
  return /^(env|file|kafka):/.test(ref) ? ref : '***'
}
