import type { Operations, WrittenSubscription } from '../operations/contract.ts'
import type { CommandContext } from './context.ts'
import type { CliDeps } from './deps.ts'
import { sinceArgument } from './options.ts'

/** From the start of the log, or from a time on (epoch ms). */
export type BackfillSince = 'all' | number

export function backfillArgument(deps: Pick<CliDeps, 'clock'>): (text: string) => BackfillSince {
  const since = sinceArgument(() => deps.clock.now())
  return (text) => (text === 'all' ? text : since(text))
}

/** The job first: whoever knows of the subscription then knows that its live traffic begins where the job ends. */
export async function addBackfilled(
  ops: Operations,
  input: Record<string, unknown> & { readonly id: string },
  options: { readonly verify?: boolean },
  since: BackfillSince,
  context: Pick<CommandContext, 'note'>,
): Promise<WrittenSubscription> {
  const times = since === 'all' ? {} : { fromMs: since }
  const job = await ops.jobs.replay({ subscription: input.id, expected: true, untilLive: true, ...times })
  try {
    const written = await ops.subscriptions.add(input, options)
    context.note(`Past events come first, by job ${job.id}: \`hooktide jobs show ${job.id}\`.`)
    return written
  } catch (error) {
    // It would give up by itself a minute later.
    await ops.jobs.cancel(job.id, { reason: 'the subscription could not be added' }).catch(() => undefined)
    throw error
  }
}
