import { loggableUrl } from '../core/attempt.ts'
import { HooktideError } from '../core/error.ts'
import { problemText } from '../core/result.ts'
import type { OperationParts } from './parts.ts'

const atOnce = 16

/**
 * The guard of every connection, asked before a subscription is written: throws `subscription.invalid` when a name leads
 * where nothing may be sent. A name that can't be resolved here is only noted (the result): the service may see other name servers.
 */
export async function refuseBlocked(
  { endpoints, config }: Pick<OperationParts, 'endpoints' | 'config'>,
  wanted: readonly { readonly id: string; readonly url: string }[],
): Promise<readonly string[]> {
  const notes: string[] = []
  const problems: string[] = []
  let next = 0
  const work = async () => {
    for (let item = wanted[next++]; item !== undefined; item = wanted[next++]) {
      const { id, url } = item
      const check = await endpoints.check(config, url)
      if (check.allowed) continue
      if (!check.decided) {
        notes.push(`${id}: ${check.reason}; its addresses are tested at every delivery`)
        continue
      }
      const remedy = check.remedies[0] ?? 'give a URL that leads to a public address'
      problems.push(`${id}: ${problemText({ field: 'url', value: loggableUrl(url), message: check.reason, remedy })}`)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, wanted.length) }, work))
  if (problems.length === 0) return notes
  throw new HooktideError('subscription.invalid', 'nothing was written: an endpoint may not be sent to', {
    details: problems,
    remedy:
      '`hooktide endpoints check URL` explains the rule; settings are those of the service, read here from the same file.',
  })
}
