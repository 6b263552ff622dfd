import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { CommandContext } from './context.ts'
import { type DeadFilterOptions, deadFilter, isWithoutFilter, withDeadFilters } from './dead-filter.ts'
import { redriveText } from './dead-view.ts'
import { exitCode } from './exit-code.ts'
import { followJob } from './follow-job.ts'
import { jobTable, jobText } from './job-view.ts'
import { countArgument, rateArgument } from './options.ts'

interface RedriveOptions extends DeadFilterOptions {
  readonly rate?: number
  readonly all?: boolean
  readonly dryRun?: boolean
  readonly detach?: boolean
  readonly why?: string
  readonly json?: boolean
}

/** `hooktide jobs …`: replays and redrives that the service works. */
export function jobsCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
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

  withDeadFilters(jobs.command('redrive'), context)
    .description('send dead letters again as a job of the service: for many of them')
    .option('--all', 'everything there is, when no filter is given')
    .option('--rate <perSecond>', 'at most so many a second (default: 500)', rateArgument)
    .option('--dry-run', 'only say how many')
    .option('--detach', 'do not wait for the end')
    .option('--why <text>', 'for whoever looks later')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.redrive)
    .action(async (options: RedriveOptions) => {
      const { rate: perSecond, why } = options
      if (isWithoutFilter(options) && options.all !== true && options.dryRun !== true) {
        throw new HooktideError('usage', 'this would send every dead letter there is', {
          remedy: 'Give a filter, or say --all; --dry-run tells how many they are.',
        })
      }
      await context.withOperations(async (ops) => {
        const filter = deadFilter(options)
        if (options.dryRun === true) {
          const report = await ops.dead.redrive({ ...filter, ids: [], dryRun: true })
          if (options.json === true) printJson(report)
          else print(redriveText(report))
          if (report.interrupted) deps.setExitCode(exitCode.failed)
          return
        }
        const input = { ...filter, perSecond, why }
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
  hooktide jobs redrive --subscription billing --since 1d --dry-run
  hooktide jobs redrive --subscription billing --since 1d --rate 50
  hooktide jobs redrive --tenant acme --last-error 503
  hooktide jobs redrive --last-error timeout --since 2h --until 1h --detach
Exit codes: 0 done; 1 it failed, was cancelled or interrupted; 2 wrong input`,
}
