import { type Command, Option } from 'commander'
import { HooktideError } from '../core/error.ts'
import { countArgument, rateArgument, wordsArgument } from './options.ts'

/** Options of `add` and `update` that say how the endpoint is spoken to. */
export interface EndpointOptions {
  readonly basicUser?: string
  readonly basicPassword?: string
  readonly bearerToken?: string
  readonly oauth2Url?: string
  readonly oauth2Client?: string
  readonly oauth2Secret?: string
  readonly oauth2Scope?: string
  readonly oauth2Audience?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tlsCa?: string
  readonly contentType?: string
  readonly legacySignature?: string
  readonly legacyPrefix?: string
  readonly legacyFormat?: string
  readonly legacySecret?: string
  readonly rate?: number
  readonly burst?: number
  readonly unset?: readonly string[]
}

/** What `--unset` can take away. */
const unsettable = [
  'auth',
  'tls',
  'contentType',
  'legacySignature',
  'rateLimit',
  'headers',
  'timeoutMs',
  'maxInFlight',
  'retry',
  'onDead',
  'filter',
  'transform',
  'whileDisabled',
  'disableAfterMs',
  'description',
] as const

export function withEndpointOptions(command: Command): Command {
  return command
    .option('--basic-user <name>', 'HTTP Basic: user name')
    .option('--basic-password <ref>', 'HTTP Basic: password (env:NAME, file:PATH, kafka:ID)')
    .option('--bearer-token <ref>', 'a fixed bearer token')
    .option('--oauth2-url <url>', 'OAuth2 client credentials: where tokens are fetched')
    .option('--oauth2-client <id>', 'OAuth2: client id')
    .option('--oauth2-secret <ref>', "OAuth2: the client's secret")
    .option('--oauth2-scope <scope>', 'OAuth2: scopes, blanks between them')
    .option('--oauth2-audience <audience>', 'OAuth2: audience')
    .option('--tls-cert <ref>', 'client certificate (PEM)')
    .option('--tls-key <ref>', 'its private key (PEM)')
    .option('--tls-ca <ref>', 'the only authorities (PEM) trusted for this endpoint')
    .option('--content-type <type>', "sent in place of the event's own")
    .option('--legacy-signature <header>', 'also sign the body alone under this header, e.g. X-Hub-Signature-256')
    .option('--legacy-prefix <text>', 'before the digest (default sha256=)')
    .addOption(new Option('--legacy-format <format>', 'of the digest (default hex)').choices(['hex', 'base64']))
    .option('--legacy-secret <ref>', 'its key as it is (default: the newest HMAC secret)')
    .option('--rate <n>', 'most POSTs a second, over all processes', rateArgument)
    .option('--burst <n>', 'most at once after a pause (default: a tenth of a second)', countArgument(1, 100_000))
    .option('--unset <fields>', `take away: ${unsettable.join(', ')}`, wordsArgument)
}

/** Options as fields of a record: only what was given. What does not go together is told as the schema would. */
export function endpointFieldsOf(options: EndpointOptions): Record<string, unknown> {
  const auth = given({
    basic: group({ username: options.basicUser, passwordRef: options.basicPassword }),
    bearer: group({ tokenRef: options.bearerToken }),
    oauth2: group({
      tokenUrl: options.oauth2Url,
      clientId: options.oauth2Client,
      clientSecretRef: options.oauth2Secret,
      scope: options.oauth2Scope,
      audience: options.oauth2Audience,
    }),
  })
  return given({
    auth: group(auth),
    tls: group({ certRef: options.tlsCert, keyRef: options.tlsKey, caRef: options.tlsCa }),
    contentType: options.contentType,
    legacySignature: group({
      header: options.legacySignature,
      prefix: options.legacyPrefix,
      format: options.legacyFormat,
      secretRef: options.legacySecret,
    }),
    rateLimit: group({ perSecond: options.rate, burst: options.burst }),
  })
}

/** Fields to be left out of the changed record. Throws `usage` for one that is not known or given in the same call. */
export function unsetFields(options: EndpointOptions, fields: Readonly<Record<string, unknown>>): readonly string[] {
  const names = options.unset ?? []
  for (const name of names) {
    if (!unsettable.some((known) => known === name))
      throw new HooktideError('usage', `--unset ${name}: no such field`, {
        remedy: `Write one of ${unsettable.join(', ')}.`,
      })
    if (name in fields) throw new HooktideError('usage', `${name} is both given and to be unset`)
  }
  return names
}

function given(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function group(fields: Record<string, unknown>): Record<string, unknown> | undefined {
  const found = given(fields)
  return Object.keys(found).length === 0 ? undefined : found
}
