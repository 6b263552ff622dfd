import { Command, Option } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { CommandContext } from './context.ts'
import { exitCode } from './exit-code.ts'
import { followJob } from './follow-job.ts'
import { jobTable, jobText } from './job-view.ts'
import { countArgument, rateArgument, sinceArgument } from './options.ts'

interface RedriveOptions {
  readonly subscription?: string
  readonly reason?: string
  readonly lastError?: string
  readonly since?: number
  readonly until?: number
  readonly rate?: number
  readonly all?: boolean
  readonly detach?: boolean
  readonly why?: string
  readonly json?: boolean
}

/** `hooktide jobs …`: replays and redrives that the service works. */
export function jobsCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const when = sinceArgument(() => deps.clock.now())
  const jobs = new Command('jobs')
    .description('Replays and redrives that the service works: list, look at, cancel')
    .addHelpText('after', examples.all)

  jobs
    .command('list')
    .description('list jobs that are not over, newest first')
    .option('--all', 'those that are over, too')
    .option('--limit <n>', 'at most so many', countArgument(1, 1000), 50)
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async ({ all = false, limit, json = false }: { all?: boolean; limit: number; json?: boolean }) => {
      const found = await context.withOperations((ops) => ops.jobs.list({ all, limit }))
      if (json) printJson(found)
      else print(found.jobs.length === 0 ? 'No jobs.' : jobTable(found.jobs))
    })

  jobs
    .command('show')
    .description('show a job, part by part')
    .argument('<job>')
    .option('--follow', 'until it is over')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.show)
    .action(async (id: string, { follow = false, json = false }: { follow?: boolean; json?: boolean }) => {
      const job = await context.withOperations(async (ops) => {
        const found = await ops.jobs.show(id)
        return follow ? followJob(deps, ops, found) : found
      })
      if (json) printJson(job)
      else print(jobText(job))
    })

  jobs
    .command('cancel')
    .description('cancel a job: nothing more is written within a second')
    .argument('<job>')
    .option('--reason <text>', 'why, for whoever looks later')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.cancel)
    .action(async (id: string, { reason, json = false }: { reason?: string; json?: boolean }) => {
      const job = await context.withOperations((ops) => ops.jobs.cancel(id, { reason }))
      if (json) printJson(job)
      else print(`job ${id}: ${job.state}, ${job.written} written`)
    })

  jobs
    .command('redrive')
    .description('send dead letters again as a job of the service: for many of them')
    .option('--subscription <id>', 'only of this subscription')
    .addOption(
      new Option('--reason <reason>', 'only dead for this reason').choices([
        'exhausted',
        'rejected',
        'gone',
        'blocked',
        'operator',
      ]),
    )
    .option('--last-error <text>', 'only with this last error: 503, timeout')
    .option('--since <when>', 'only dead since: how long ago, or a date', when)
    .option('--until <when>', 'only dead before', when)
    .option('--all', 'everything there is, when no filter is given')
    .option('--rate <perSecond>', 'at most so many a second (default: 500)', rateArgument)
    .option('--detach', 'do not wait for the end')
    .option('--why <text>', 'for whoever looks later')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.redrive)
    .action(async (options: RedriveOptions) => {
      const { subscription, reason, lastError, since, until, rate: perSecond, why } = options
      if ((subscription ?? reason ?? lastError ?? since ?? until) === undefined && options.all !== true) {
        throw new HooktideError('usage', 'this would send every dead letter there is', {
          remedy: 'Give a filter, or say --all. `hooktide dead redrive --dry-run` tells how many they are.',
        })
      }
      await context.withOperations(async (ops) => {
        const input = { subscription, reason, lastError, since, until, perSecond, why }
        const started = await ops.jobs.redrive(input)
        const job = options.detach === true ? started : await followJob(deps, ops, started)
        if (options.json === true) printJson(job)
        else print(jobText(job))
        if (options.detach !== true && job.state !== 'done') deps.setExitCode(exitCode.failed)
      })
    })
  return jobs
}

const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
const examples = {
  all: `
Examples:
  hooktide jobs list
  hooktide jobs redrive --subscription billing --last-error 503 --rate 50
  hooktide jobs cancel m3x0k2a1-9f8e7d6c${codes}`,
  list: `
Examples:
  hooktide jobs list
  hooktide jobs list --all --json${codes}`,
  show: `
Examples:
  hooktide jobs show m3x0k2a1-9f8e7d6c
  hooktide jobs show m3x0k2a1-9f8e7d6c --follow${codes}`,
  cancel: `
Examples:
  hooktide jobs cancel m3x0k2a1-9f8e7d6c
  hooktide jobs cancel m3x0k2a1-9f8e7d6c --reason 'wrong subscription'
What is written already goes its way. A replay until live ends where it is: what it had not come to is left out.${codes}`,
  redrive: `
Examples:
  hooktide jobs redrive --subscription billing --since 1d --rate 50
  hooktide jobs redrive --last-error timeout --since 2h --until 1h --detach
Exit codes: 0 done; 1 it failed, was cancelled or interrupted; 2 wrong input`,
}
