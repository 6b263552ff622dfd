import { HooktideError } from '../core/error.ts'
import type { Problem } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Caller } from './contract.ts'

/**
 * A reference makes the service use a secret of its own: sign with it, or, as a password or token, send it to the endpoint in
 * clear. Who may name any could have all of them sent to a URL of their choice. What stands there already may stay.
 */
export function refuseReferences(
  { references = 'all' }: Caller,
  before: Subscription | undefined,
  after: Subscription,
): void {
  if (references === 'all') return
  const known = new Set(before === undefined ? [] : referencesIn(before, '').map(({ ref }) => ref))
  const refused = referencesIn(after, '').filter(({ field, ref }) => {
    if (known.has(ref)) return false
    const signs = field.startsWith('secrets[')
    return !(signs && (ref === 'kafka:new' || references === 'signing'))
  })
  if (refused.length === 0) return
  throw new HooktideError('forbidden', 'the caller may not make the service use these secrets', {
    problems: refused.map(
      ({ field }): Problem => ({
        field,
        value: '***',
        message: 'is a reference that was not there before',
        remedy:
          references === 'own'
            ? 'ask an operator to set it, or, to sign with, use kafka:new'
            : 'use a token with the scope secrets',
      }),
    ),
  })
}

function referencesIn(value: unknown, path: string): { readonly field: string; readonly ref: string }[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => referencesIn(item, `${path}[${i}]`))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const field = path === '' ? name : `${path}.${name}`
    const isReference = typeof inner === 'string' && (name === 'ref' || name.endsWith('Ref'))
    return isReference ? [{ field, ref: inner }] : referencesIn(inner, field)
  })
}
