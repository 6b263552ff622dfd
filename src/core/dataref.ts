import { type Claim, checkedClaim } from './claim.ts'
import { Refusal } from './event-rules.ts'

/** Attribute names of a CloudEvent whose data stands in the object store (its `dataref` extension, and two of ours beside it). */
export const datarefNames = ['dataref', 'datarefsize', 'datarefsha256'] as const
type DatarefName = (typeof datarefNames)[number]

/**
 * The pointer of a CloudEvent without data; undefined: it has none. The reference is a key of the one store that is configured: an
 * absolute one could lead anywhere, and without size and digest nobody could tell that what is there is what was meant.
 * Source: CloudEvents extension "Dataref (Claim Check Pattern)".
 */
export function datarefClaim(get: (name: DatarefName) => string | undefined, maxBytes: number): Claim | undefined {
  const key = get('dataref')
  if (key === undefined) return undefined
  const size = get('datarefsize')
  const bytes = size !== undefined && /^[0-9]{1,15}$/.test(size) ? Number(size) : undefined
  const claim = checkedClaim({ key, bytes, sha256: get('datarefsha256') }, maxBytes, {
    what: 'dataref of a CloudEvent without data',
    key: 'it',
    bytes: 'datarefsize',
    sha256: 'datarefsha256',
  })
  if (!claim.ok) throw new Refusal(claim.code === 'too-large' ? 'too-large' : 'bad-claim', claim.reason)
  return claim.value
}
