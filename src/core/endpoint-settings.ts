import { checkCustomHeaders, isHeaderValue } from './custom-headers.ts'
import type { GuardPolicy } from './guard-policy.ts'
import type { Problem } from './result.ts'
import { checkUrl } from './url-rules.ts'

/** How an endpoint wants to be convinced beside the signature; exactly one of them. All `…Ref` are references, never secrets. */
export interface EndpointAuth {
  readonly basic?: { readonly username: string; readonly passwordRef: string }
  readonly bearer?: { readonly tokenRef: string }
  readonly oauth2?: OAuth2Client
}

/** Client credentials grant (RFC 6749 §4.4). */
export interface OAuth2Client {
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecretRef: string
  readonly scope?: string
  readonly audience?: string
  /** Where the client's secret goes: the Authorization header (default) or the form. */
  readonly clientAuth?: 'basic' | 'post'
}

/** A client certificate, PEM; `caRef` names the only authorities that this endpoint's own certificate may come from. */
export interface EndpointTls {
  readonly certRef: string
  readonly keyRef: string
  readonly caRef?: string
}

/** HMAC-SHA256 over the body alone, for receivers that come from elsewhere: `x-hub-signature-256: sha256=<hex>`. */
export interface LegacySignature {
  readonly header: string
  /** Before the digest; `sha256=` when it is left out. */
  readonly prefix?: string
  readonly format?: 'hex' | 'base64'
  /** Its text as it is, in UTF-8, is the key; left out: the newest HMAC secret of the subscription. */
  readonly secretRef?: string
}

/** At most `perSecond` POSTs a second, retries counted, and `burst` at once (default: a tenth of a second's worth). */
export interface EndpointRate {
  readonly perSecond: number
  readonly burst?: number
}

/** The parts of a subscription that say how its endpoint is spoken to. */
export interface EndpointSettings {
  readonly auth?: EndpointAuth
  readonly tls?: EndpointTls
  /** Sent in place of the event's own. */
  readonly contentType?: string
  readonly legacySignature?: LegacySignature
  readonly rateLimit?: EndpointRate
}

/** Every reference in them. */
export function endpointRefs({ auth, tls, legacySignature }: EndpointSettings): string[] {
  return [
    auth?.basic?.passwordRef,
    auth?.bearer?.tokenRef,
    auth?.oauth2?.clientSecretRef,
    tls?.certRef,
    tls?.keyRef,
    tls?.caRef,
    legacySignature?.secretRef,
  ].filter((ref) => ref !== undefined)
}

/** What the schema can't tell: one problem per field, nothing of a secret in any. `data` may be anything. */
export function endpointProblems(data: Readonly<Record<string, unknown>>, guard: GuardPolicy): Problem[] {
  const problems: Problem[] = []
  const headers = record(data.headers)
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  const auth = record(data.auth)
  if (data.auth !== undefined && names.has('authorization'))
    problems.push(problem('headers.authorization', 'is set by auth as well', 'keep one of them'))
  const tokenUrl = record(auth.oauth2).tokenUrl
  if (typeof tokenUrl === 'string') {
    const checked = checkUrl(tokenUrl, guard)
    if (!checked.ok) problems.push(problem('auth.oauth2.tokenUrl', checked.reason, 'give a public https:// URL'))
  }
  const username = record(auth.basic).username
  if (typeof username === 'string' && username.includes(':'))
    problems.push(problem('auth.basic.username', 'contains a colon, which ends a user name (RFC 7617)', 'remove it'))
  const legacy = record(data.legacySignature).header
  if (typeof legacy === 'string') {
    const reason = legacyHeaderProblem(legacy)
    if (reason !== null)
      problems.push(problem('legacySignature.header', reason, 'use another, e.g. X-Hub-Signature-256'))
    else if (names.has(legacy.toLowerCase()))
      problems.push(problem('legacySignature.header', 'is among headers as well', 'keep one of them'))
  }
  const prefix = record(data.legacySignature).prefix
  if (typeof prefix === 'string' && !/^[\x21-\x7e]*$/.test(prefix))
    problems.push(problem('legacySignature.prefix', 'must be visible ASCII without spaces', 'e.g. sha256='))
  if (typeof data.contentType === 'string' && !isContentType(data.contentType))
    problems.push(problem('contentType', 'is no media type', 'e.g. application/json; charset=utf-8'))
  const { perSecond, burst } = record(data.rateLimit)
  if (typeof perSecond === 'number' && typeof burst === 'number' && burst > Math.max(1, perSecond * 60))
    problems.push(problem('rateLimit.burst', 'is more than a minute of perSecond', 'lower it'))
  return problems
}

/** Why a header may not carry the legacy signature; null when it may. */
export function legacyHeaderProblem(name: string): string | null {
  const checked = checkCustomHeaders({ [name]: 'x' })
  if (!checked.ok) return checked.reason
  return name.toLowerCase() === 'authorization' ? 'is for credentials' : null
}

export function isContentType(text: string): boolean {
  const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
  return new RegExp(`^${token}/${token}(\\s*;.*)?$`).test(text) && isHeaderValue(text) && text.length <= 256
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function problem(field: string, message: string, remedy: string): Problem {
  return { field, value: '', message, remedy }
}
