import type { Subscription } from '../core/subscription.ts'
import type { VerifiedJson } from './contract.ts'
import { unverified, type Verified, type VerifyParts, verifyEndpoints } from './endpoint-verify.ts'
import type { OperationParts } from './parts.ts'

export interface WrittenVerified {
  readonly subscriptions: readonly Subscription[]
  readonly versions: ReadonlyMap<string, string>
  readonly notes: readonly string[]
}

/**
 * Writes subscriptions whose endpoints are new. Where a challenge is asked for they are paused until it has come back.
 * `secretIsNew`: the receiver can't know it yet, so there is no use in asking it now. The result is how they stand then.
 */
export async function writeVerified(
  parts: OperationParts,
  subscriptions: readonly Subscription[],
  since: ReadonlyMap<number, number>,
  options: { readonly verify: boolean; readonly secretIsNew: boolean },
): Promise<WrittenVerified> {
  const store = parts.subscriptions
  const asked = (subscription: Subscription) => options.verify && subscription.status === 'active'
  const written = subscriptions.map((each) => (asked(each) ? unverified(each) : each))
  const changes = written.map((subscription) => ({ id: subscription.id, subscription }))
  const versions = await store.write(changes, since)
  const waiting = written.filter((_, i) => asked(subscriptions[i] as Subscription))
  if (waiting.length === 0) return { subscriptions: written, versions, notes: [] }
  if (options.secretIsNew) {
    const ids = waiting.map(({ id }) => id).join(' ')
    const note = `paused until the endpoint is verified: give it the secret, then run hooktide endpoints verify ${ids}`
    return { subscriptions: written, versions, notes: [note] }
  }
  const results = await verifyEndpoints(verifyParts(parts), waiting)
  return {
    subscriptions: written.map((each) => results.find(({ id }) => id === each.id)?.subscription ?? each),
    versions: (await store.snapshot()).versions,
    notes: results.map((result) => verifiedText(verifiedJson(result))),
  }
}

export function verifyParts({ kafka, config, clock, endpoints, subscriptions: store }: OperationParts): VerifyParts {
  return { cluster: { kafka }, config, clock, endpoints, store }
}

export function verifiedJson({ id, verified, detail, subscription }: Verified): VerifiedJson {
  return { id, verified, detail, status: subscription.status }
}

export function verifiedText({ id, verified, detail, status }: VerifiedJson): string {
  return verified ? `${id}: verified; it is ${status}` : `${id}: not verified: ${detail}; it is ${status}`
}
