import { Command, Option } from 'commander'
import type { Control } from '../core/control.ts'
import type { LineChoiceInput } from '../operations/contract.ts'
import type { CommandContext } from './context.ts'
import { detailsText, linesTable } from './line-view.ts'
import { countArgument } from './options.ts'
import { type OrderOptions, orderText, withOrderOptions } from './order-options.ts'
import { oneLine } from './text.ts'

interface Choice {
  readonly subscription?: string
  readonly key?: string
}

/** `hooktide lines …`: what waits behind something, and getting it on its way. */
export function linesCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const lines = new Command('lines')
    .description('Lines that wait: behind a head that is retried or dead, or parked')
    .addHelpText('after', examples.all)
  const withLine = (command: Command) =>
    command
      .argument('[line...]', 'as `lines list` shows it: SUBSCRIPTION k KEY, SUBSCRIPTION s or SUBSCRIPTION o')
      .option('--subscription <id>', 'instead: the line of this subscription')
      .option('--key <key>', 'with --subscription: the line of this ordering key')

  lines
    .command('list')
    .description('list lines that are not simply open, the longest-standing first')
    .option('--subscription <id>', 'only of this subscription')
    .addOption(new Option('--state <state>', 'only in this state').choices(['blocked', 'draining', 'stopped']))
    .option('--limit <n>', 'at most so many', countArgument(1, 1_000_000), 100)
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async (options: { subscription?: string; state?: string; limit: number; json?: boolean }) => {
      const found = await context.withOperations((ops) => ops.lines.list(options))
      const { lines: shown, total } = found
      if (options.json === true) return printJson(found)
      print(total === 0 ? 'No line waits.' : linesTable(shown, deps.clock.now()))
      if (total > shown.length) print(`${total - shown.length} more: --limit`)
    })

  withLine(lines.command('show'))
    .description('show one line: its head, what is parked behind it, why it stands')
    .option('--limit <n>', 'how many of the parked deliveries', countArgument(0, 10_000), 10)
    .option('--json', 'print JSON')
    .addHelpText('after', examples.show)
    .action(async (line: string[], options: Choice & { limit: number; json?: boolean }) => {
      const { lines: found } = await context.withOperations((ops) =>
        ops.lines.show(choice(line, options), options.limit),
      )
      if (options.json === true) printJson({ lines: found })
      else print(found.map((one) => detailsText(one, deps.clock.now())).join('\n\n'))
    })

  withOrderOptions(withLine(lines.command('release')))
    .description('a blocked or stopped line goes on; a blocked head is still retried, on its own')
    .addHelpText('after', examples.release)
    .action(async (line: string[], options: Choice & OrderOptions) => {
      const done = await context.withOperations((ops) => ops.lines.release(choice(line, options), options))
      const what = done.order === null ? 'goes on already' : orderText(done.order, deps.clock.now())
      told(options, done.order, `${done.line} ${what}`)
    })

  withOrderOptions(withLine(lines.command('skip')))
    .description('the head of a line is cancelled, and the line goes on')
    .option('--dead', 'send the head to the dead letters instead')
    .addHelpText('after', examples.skip)
    .action(async (line: string[], options: Choice & OrderOptions & { dead?: boolean }) => {
      const {
        line: key,
        order,
        head,
      } = await context.withOperations((ops) => ops.lines.skip(choice(line, options), options))
      const what = order === null ? '' : orderText(order, deps.clock.now())
      const skipped = order?.kind === 'delivery'
      told(options, order, skipped ? `${head}, the head of ${key}, ${what}; the line goes on` : `${key} ${what}`)
    })

  withOrderOptions(withLine(lines.command('cancel')))
    .description('everything that waits in a line now is cancelled; what comes later is not')
    .option('--dead', 'send it to the dead letters instead')
    .option('--yes', 'do it: this can not be undone')
    .addHelpText('after', examples.cancel)
    .action(async (line: string[], options: Choice & OrderOptions & { dead?: boolean; yes?: boolean }) => {
      const input = { ...options, confirmed: options.yes === true }
      const done = await context.withOperations((ops) => ops.lines.cancel(choice(line, options), input))
      const what = done.order === null ? '' : orderText(done.order, deps.clock.now())
      told(options, done.order, `${done.line}, with ${done.parked} parked, ${what}`)
    })

  function told(options: OrderOptions, order: Control | null, text: string): void {
    if (options.json === true) printJson({ order })
    else print(oneLine(text))
  }

  return lines
}

function choice(line: readonly string[], { subscription, key }: Choice): LineChoiceInput {
  return { line: line.length === 0 ? undefined : line.join(' '), subscription, key }
}

const codes =
  '\nEvery instance obeys within a second, and after a restart.\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
const examples = {
  all: `
Examples:
  hooktide lines list --state stopped
  hooktide lines show --subscription billing --key order-7
  hooktide lines release billing k order-7 --reason 'its first event is obsolete'
  hooktide lines skip billing k order-7${codes}`,
  list: `
Examples:
  hooktide lines list
  hooktide lines list --subscription billing --state blocked --json${codes}`,
  show: `
Examples:
  hooktide lines show billing k order-7
  hooktide lines show --subscription billing --key order-7 --limit 100 --json${codes}`,
  release: `
Examples:
  hooktide lines release billing k order-7
  hooktide lines release --subscription billing --key order-7 --reason 'agreed with the customer'
A stopped line stands again when another of its deliveries dies.${codes}`,
  skip: `
Examples:
  hooktide lines skip billing k order-7
  hooktide lines skip --subscription billing --key order-7 --dead --reason 'needs a repair by hand'${codes}`,
  cancel: `
Examples:
  hooktide lines cancel billing k order-7 --yes
  hooktide lines cancel --subscription billing --key order-7 --dead --yes --reason 'customer left'
Holds for events from before the order; it is obeyed as each of them comes up.${codes}`,
}
