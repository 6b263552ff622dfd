import type { Command } from 'commander'
import type { Subscription } from '../core/subscription.ts'
import type { CommandContext } from './context.ts'

/** Adds `pause` and `resume` to `hooktide subscriptions`. What arrives meanwhile waits, in order, and no attempt is spent. */
export function withPauseCommands(subscriptions: Command, context: CommandContext): Command {
  const { print, printJson } = context

  subscriptions
    .command('pause')
    .description('attempt nothing until it is resumed; what arrives meanwhile waits')
    .argument('<id>')
    .option('--reason <text>', 'why, for whoever looks later')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.pause)
    .action(async (id: string, options: { reason?: string; json?: boolean }) => {
      await set(id, 'paused', options)
    })

  subscriptions
    .command('resume')
    .alias('enable')
    .description('go on with a paused or disabled subscription: all that waits is delivered, in order')
    .argument('<id>')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.resume)
    .action(async (id: string, options: { json?: boolean }) => {
      await set(id, 'active', options)
    })

  async function set(
    id: string,
    status: Subscription['status'],
    options: { reason?: string; json?: boolean },
  ): Promise<void> {
    const { subscription } = await context.withOperations((ops) =>
      ops.subscriptions.setStatus(id, status, options.reason),
    )
    if (options.json === true) printJson({ subscription, newSecrets: [] })
    else print(status === 'paused' ? `paused ${id}` : `resumed ${id}`)
  }

  return subscriptions
}

const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
const examples = {
  pause: `
Examples:
  hooktide subscriptions pause billing
  hooktide subscriptions pause billing --reason 'migration until Monday' --json${codes}`,
  resume: `
Examples:
  hooktide subscriptions resume billing
  hooktide subscriptions enable billing            the same, for one that was disabled
  hooktide subscriptions resume billing --json${codes}`,
}
