import { Command, Option } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { CommandContext } from './context.ts'
import { orderText } from './order-options.ts'
import { oneLine, plural } from './text.ts'

/** `hooktide control …`: all operators' orders in one place. */
export function controlCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const control = new Command('control')
    .description("Operators' orders: list those in force, take them back")
    .addHelpText('after', examples.all)

  control
    .command('list')
    .description('list orders, newest first')
    .addOption(
      new Option('--kind <kind>', 'only for these').choices(['tier', 'subscription', 'delivery', 'line', 'job']),
    )
    .option('--all', 'also those that ended or were taken back')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async (options: { kind?: string; all?: boolean; json?: boolean }) => {
      const { orders: found } = await context.withOperations((ops) => ops.orders.list(options))
      if (options.json === true) return printJson({ orders: found })
      const nowMs = deps.clock.now()
      for (const { key, order, problem, inForce } of found) {
        const over = order !== null && !inForce ? ' (no longer in force)' : ''
        print(oneLine(`${key}  ${order === null ? `can not be read: ${problem}` : orderText(order, nowMs)}${over}`))
      }
      if (found.length === 0) print('No orders.')
    })

  control
    .command('clear')
    .description('take orders back, whatever they are')
    .argument('[target...]', 'as `control list` shows them: kind:target')
    .option('--ended', 'all that are no longer in force')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.clear)
    .action(async (targets: string[], options: { ended?: boolean; json?: boolean }) => {
      if (targets.length === 0 && options.ended !== true) {
        throw new HooktideError('usage', 'no order was named', { remedy: 'Give its kind:target, or --ended.' })
      }
      const ended = options.ended === true
      const { cleared } = await context.withOperations((ops) => ops.orders.clear(targets, { ended }))
      if (options.json === true) return printJson({ cleared })
      for (const key of cleared) print(`cleared ${oneLine(key)}`)
      if (cleared.length === 0) print(`Nothing to clear: ${plural(0, 'order')} ended.`)
    })
  return control
}

const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
const examples = {
  all: `
Examples:
  hooktide control list
  hooktide control clear tier:retry-5m delivery:msg_Q1…${codes}`,
  list: `
Examples:
  hooktide control list
  hooktide control list --kind delivery --all --json${codes}`,
  clear: `
Examples:
  hooktide control clear tier:retry-5m
  hooktide control clear 'line:billing k order-7'
  hooktide control clear --ended
A cancel that is taken back no longer holds for what has not been settled by it.${codes}`,
}
