import { addressRefusal } from '../core/address-guard.ts'
import { type GuardPolicy, nameAllowed } from '../core/guard-policy.ts'
import { checkUrl } from '../core/url-rules.ts'
import type { Resolver } from './resolver.ts'

/** Why a URL may or may not be sent to, for people. Nothing is connected to. */
export interface EndpointCheck {
  readonly allowed: boolean
  /** One sentence; for an allowed URL what was found. */
  readonly reason: string
  /** Every answer of the lookup with its refusal (null: may be dialled). Empty when the URL alone settles it. */
  readonly addresses: readonly { readonly address: string; readonly refusal: string | null }[]
}

/** The same rules in the same order as an attempt: the URL, then every answer of one lookup. Never rejects. */
export async function checkEndpoint(url: string, policy: GuardPolicy, resolver: Resolver): Promise<EndpointCheck> {
  const target = checkUrl(url, policy)
  if (!target.ok) return { allowed: false, reason: target.reason, addresses: [] }
  const { hostname, literal } = target.value
  if (literal)
    return {
      allowed: true,
      reason: `address ${hostname} may be dialled`,
      addresses: [{ address: hostname, refusal: null }],
    }
  return new Promise((resolve) => {
    resolver.lookup(hostname, (error, answers) => {
      if (error !== null) return resolve({ allowed: false, reason: error.message, addresses: [] })
      const trusted = nameAllowed(hostname, policy)
      const addresses = answers.map((address) => ({ address, refusal: addressRefusal(address, policy, trusted) }))
      const bad = addresses.find((each) => each.refusal !== null)
      const reason =
        bad === undefined
          ? `${hostname} resolves to ${answers.join(', ')}`
          : `${hostname} resolves to ${bad.address}: ${bad.refusal}`
      resolve({ allowed: bad === undefined && addresses.length > 0, reason, addresses })
    })
  })
}
