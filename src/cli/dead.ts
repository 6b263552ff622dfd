import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { CommandContext } from './context.ts'
import { type DeadFilterOptions, deadFilter, isWithoutFilter, withDeadFilters } from './dead-filter.ts'
import { deadTable, deadText, redriveText } from './dead-view.ts'
import { exitCode } from './exit-code.ts'
import { countArgument, rateArgument } from './options.ts'

interface FilterOptions extends DeadFilterOptions {
  readonly cursor?: string
  readonly json?: boolean
}

/** `hooktide dead …`: what could not be delivered, and sending it again. */
export function deadCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const dead = new Command('dead')
    .description('Dead letters: list, look at, send again')
    .addHelpText('after', examples.all)
  const withFilters = (command: Command) =>
    withDeadFilters(command, context)
      .option('--cursor <cursor>', 'go on where the last call stopped: partition/offset')
      .option('--json', 'print JSON')

  withFilters(dead.command('list'))
    .description('list dead letters, oldest of each lane first')
    .option('--limit <n>', 'at most so many', countArgument(1, 100_000), 50)
    .addHelpText('after', examples.list)
    .action(async (options: FilterOptions & { limit: number }) => {
      const { cursor, limit } = options
      const found = await context.withOperations((ops) => ops.dead.list({ ...deadFilter(options), cursor, limit }))
      if (options.json === true) return printJson(found)
      print(found.dead.length === 0 ? 'No dead letters.' : deadTable(found.dead))
      if (found.cursor !== null) print(`There are more: --cursor ${found.cursor}`)
    })

  dead
    .command('show')
    .description('show one dead letter')
    .argument('<delivery>', 'delivery id, or its place in dead: partition/offset')
    .option('--subscription <id>', 'its subscription: looks in one lane only')
    .option('--body', 'print the body, byte for byte, and nothing else')
    .option('--json', 'print JSON; the body as base64')
    .addHelpText('after', examples.show)
    .action(async (id: string, options: { subscription?: string; body?: boolean; json?: boolean }) => {
      const letter = await context.withOperations((ops) => ops.dead.show(id, options.subscription))
      if (options.body === true) deps.stdout.write(Buffer.from(letter.body, 'base64'))
      else if (options.json === true) printJson(letter)
      else
        print(letter.times > 1 ? `${deadText(letter)}\ndied ${letter.times} times; this is the last` : deadText(letter))
    })

  withFilters(dead.command('redrive'))
    .description('send dead letters again: same delivery ids, attempts counted anew')
    .argument('[delivery...]', 'delivery ids; none: all that the filters leave')
    .option('--all', 'send everything there is, when no filter is given')
    .option('--rate <perSecond>', 'at most so many per second', rateArgument)
    .option('--dry-run', 'only say how many')
    .addHelpText('after', examples.redrive)
    .action(async (ids: string[], options: FilterOptions & { all?: boolean; rate?: number; dryRun?: boolean }) => {
      if (ids.length === 0 && isWithoutFilter(options) && options.all !== true) {
        throw new HooktideError('usage', 'this would send every dead letter there is', {
          remedy: 'Give delivery ids or a filter, or say --all.',
        })
      }
      const dryRun = options.dryRun === true
      const wanted = { ...deadFilter(options), cursor: options.cursor, ids, perSecond: options.rate, dryRun }
      const report = await context.withOperations((ops) => ops.dead.redrive(wanted))
      const { redriven, notFound, interrupted } = report
      if (options.json === true) printJson(report)
      else print(redriveText(report))
      if (notFound.length > 0 && !interrupted)
        context.note(`no dead letters: ${notFound.slice(0, 20).join(', ')}${notFound.length > 20 ? ', …' : ''}`)
      if (interrupted || (ids.length > 0 && redriven < new Set(ids).size)) deps.setExitCode(exitCode.failed)
    })

  return dead
}

const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
const examples = {
  all: `
Examples:
  hooktide dead list --since 2h
  hooktide dead show msg_…
  hooktide dead redrive --subscription billing --dry-run${codes}`,
  list: `
Examples:
  hooktide dead list --subscription billing
  hooktide dead list --reason exhausted --since 1d --limit 500 --json${codes}`,
  show: `
Examples:
  hooktide dead show msg_Q1…  --subscription billing
  hooktide dead show 3/120 --body > body.json${codes}`,
  redrive: `
Examples:
  hooktide dead redrive --subscription billing --since 1d --dry-run
  hooktide dead redrive --subscription billing --since 1d --rate 50
  hooktide dead redrive msg_Q1… msg_x7…
A second run sends them again, under the same ids: dead letters stay until retention takes them.
Exit codes: 0 done; 1 it failed, was interrupted, or an id was not found; 2 wrong input`,
}
