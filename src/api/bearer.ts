import { type ApiScope, apiScopes } from '../core/api-token.ts'
import { HooktideError } from '../core/error.ts'
import type { Caller } from '../operations/contract.ts'
import type { TokenSource } from './token-source.ts'

export interface Bearer {
  readonly caller: Caller
  readonly scopes: readonly ApiScope[]
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null: the route is open to all, nobody was asked for. */
    bearer: Bearer | null
  }
}

const everybody: Bearer = { caller: { tenant: null, by: 'api', named: true }, scopes: apiScopes }

/** Who presents this `authorization` (RFC 6750). Throws `unauthorized`, whatever is wrong with it. */
export function bearerOf(authorization: string | undefined, tokens: TokenSource | null): Bearer {
  if (tokens === null) return everybody
  const [, presented] = /^bearer +([\x21-\x7e]{1,512})$/i.exec(authorization ?? '') ?? []
  const token = presented === undefined ? null : tokens.find(presented)
  if (token !== null) {
    const { name, tenant, scopes } = token
    const references = tenant !== null ? 'own' : scopes.includes('secrets') ? 'all' : 'signing'
    return { caller: { tenant, by: `token ${name}`, named: true, references }, scopes }
  }
  throw new HooktideError(
    'unauthorized',
    presented === undefined ? 'a bearer token is needed' : 'the token is not known',
    {
      remedy: 'Send Authorization: Bearer and a token; `hooktide tokens create` makes one.',
    },
  )
}
