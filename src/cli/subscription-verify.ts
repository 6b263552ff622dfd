import type { Subscription } from '../core/subscription.ts'
import { unverified, type VerifyParts, verifyEndpoints } from '../operations/endpoint-verify.ts'
import type { CommandContext } from './context.ts'
import { verifiedText } from './endpoints.ts'

/**
 * Writes subscriptions whose endpoints are new. Where a challenge is asked for they are paused until it has come back.
 * `secretIsNew`: the receiver can't know it yet, so there is no use in asking it now. Returns them as they stand then.
 */
export async function writeVerified(
  context: CommandContext,
  parts: VerifyParts,
  subscriptions: readonly Subscription[],
  options: { readonly verify: boolean; readonly secretIsNew: boolean },
): Promise<readonly Subscription[]> {
  const asked = (subscription: Subscription) => options.verify && subscription.status === 'active'
  const written = subscriptions.map((each) => (asked(each) ? unverified(each) : each))
  await parts.store.write(written.map((subscription) => ({ id: subscription.id, subscription })))
  const waiting = written.filter((_, i) => asked(subscriptions[i] as Subscription))
  if (waiting.length === 0) return written
  if (options.secretIsNew) {
    const ids = waiting.map(({ id }) => id).join(' ')
    context.note(`paused until the endpoint is verified: give it the secret, then run hooktide endpoints verify ${ids}`)
    return written
  }
  const results = await verifyEndpoints(parts, waiting)
  for (const result of results) context.note(verifiedText(result))
  return written.map((each) => results.find(({ id }) => id === each.id)?.subscription ?? each)
}
