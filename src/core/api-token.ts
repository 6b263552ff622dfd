import { createHash, timingSafeEqual } from 'node:crypto'
import type { Problem } from './result.ts'

/**
 * What a token lets its bearer do. `read`: look; `write`: change, and hand in events; `replay`: send again; `secrets`: have
 * signing secrets made and be told them, once. None includes another.
 */
export const apiScopes = ['read', 'write', 'replay', 'secrets'] as const

export type ApiScope = (typeof apiScopes)[number]

/** A token as it is kept: never the token itself. */
export interface ApiToken {
  readonly name: string
  /** `sha256:` and 64 hex digits. Tokens are 256 random bits, so a plain hash is enough. */
  readonly hash: string
  readonly scopes: readonly ApiScope[]
  /** Null: an operator's, for all tenants. */
  readonly tenant: string | null
}

export function hashToken(token: string): string {
  return `sha256:${createHash('sha256').update(token).digest('hex')}`
}

/** The entry of a presented token; null: none. Takes as long for a wrong token as for a right one. */
export function findToken(tokens: readonly ApiToken[], presented: string): ApiToken | null {
  const given = Buffer.from(hashToken(presented))
  let found: ApiToken | null = null
  for (const token of tokens) {
    const known = Buffer.from(token.hash)
    if (known.length === given.length && timingSafeEqual(known, given)) found = token
  }
  return found
}

/** A list of entries as a file or the configuration holds it; every problem at once. Never throws. */
export function readApiTokens(value: unknown): { readonly tokens: ApiToken[]; readonly problems: Problem[] } {
  const tokens: ApiToken[] = []
  const problems: Problem[] = []
  if (!Array.isArray(value)) {
    const remedy = 'write a list of {name, hash, scopes}; `hooktide tokens create` prints one'
    return { tokens, problems: [{ field: 'tokens', value: '', message: 'is not a list', remedy }] }
  }
  for (const [i, item] of value.entries()) {
    const bad = (name: string, message: string, remedy: string) =>
      problems.push({ field: `tokens[${i}].${name}`, value: '', message, remedy })
    const entry = (typeof item === 'object' && item !== null ? item : {}) as Record<string, unknown>
    const { name, hash, scopes, tenant = null, ...rest } = entry
    if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/.test(name))
      bad('name', 'is no name', "use letters, digits, '.', '_', '@' and '-', at most 64")
    if (typeof hash !== 'string' || !/^sha256:[0-9a-f]{64}$/.test(hash))
      bad('hash', 'is no hash', 'write sha256:HEX as `hooktide tokens create` prints it, never the token')
    const known = Array.isArray(scopes) && scopes.length > 0 && scopes.every((scope) => apiScopes.includes(scope))
    if (!known) bad('scopes', 'are not known', `write a list of ${apiScopes.join(', ')}`)
    if (tenant !== null && (typeof tenant !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$/.test(tenant)))
      bad('tenant', 'is no tenant', 'write the name of one, or leave it out')
    for (const key of Object.keys(rest)) bad(key.slice(0, 40), 'is not a known key', 'remove it')
    tokens.push({ name, hash, scopes, tenant } as ApiToken)
  }
  if (new Set(tokens.map(({ name }) => name)).size < tokens.length)
    problems.push({ field: 'tokens', value: '', message: 'two have the same name', remedy: 'rename one of them' })
  return { tokens, problems }
}
