import { Command, InvalidArgumentError } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { ReplayInput } from '../operations/job-contract.ts'
import type { CommandContext } from './context.ts'
import { exitCode } from './exit-code.ts'
import { followJob } from './follow-job.ts'
import { jobText, previewText, progressText } from './job-view.ts'
import { listArgument, rateArgument, sinceArgument } from './options.ts'

interface ReplayOptions {
  readonly subscription: string
  readonly from?: string
  readonly to?: string
  readonly fromTime?: number
  readonly toTime?: number
  readonly type?: string
  readonly onlyMissing?: boolean
  readonly rate?: number
  readonly untilLive?: boolean
  readonly dryRun?: boolean
  readonly shadow?: boolean
  readonly filter?: Readonly<Record<string, unknown>>
  readonly filterNone?: boolean
  readonly types?: readonly string[]
  readonly detach?: boolean
  readonly reason?: string
  readonly json?: boolean
}

/** `hooktide replay`: events delivered once more, from the log. */
export function replayCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const when = sinceArgument(() => deps.clock.now())
  return new Command('replay')
    .description('Match events again and deliver them again to a subscription, under the same ids')
    .requiredOption('--subscription <id>', 'to whom')
    .option('--from <offsets>', 'from this offset: 0, or topic/partition=offset,… (default: the start of the log)')
    .option('--to <offsets>', 'up to but without it (default: the end of the log as it is now)')
    .option('--from-time <when>', 'only events since: how long ago, or a date', when)
    .option('--to-time <when>', 'only events before', when)
    .option('--type <type>', 'only of this type: exact, or a prefix with .*')
    .option('--only-missing', 'leave out what was delivered, and what waits for a retry')
    .option('--rate <perSecond>', 'at most so many a second (default: 500)', rateArgument)
    .option('--until-live', 'go on until live traffic is caught up with; live deliveries of it begin there')
    .option('--dry-run', 'only say how many would be sent')
    .option('--shadow', 'say what would be sent under --filter, --filter-none or --types; sends nothing')
    .option('--filter <json>', 'with --shadow: the changed filter', filterArgument)
    .option('--filter-none', 'with --shadow: as if there were no filter')
    .option('--types <type>', 'with --shadow: other types; may be repeated', listArgument)
    .option('--detach', 'do not wait for the end: the job goes on in the service')
    .option('--reason <text>', 'why, for whoever looks later')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async (options: ReplayOptions) => {
      const input = inputOf(options)
      await context.withOperations(async (ops) => {
        if (options.dryRun === true || options.shadow === true) {
          const preview = await ops.jobs.preview(input)
          if (options.json === true) printJson(preview)
          else print(previewText(preview))
          if (!preview.complete) deps.setExitCode(exitCode.failed)
          return
        }
        const started = await ops.jobs.replay(input)
        if (options.json !== true) context.note(`job ${started.id} started`)
        const job = options.detach === true ? started : await followJob(deps, ops, started)
        if (options.json === true) printJson(job)
        else if (job.state === 'running') print(`Job ${job.id} goes on: \`hooktide jobs show ${job.id}\`.`)
        else print(job.state === 'done' ? `job ${job.id} done, ${progressText(job)}` : jobText(job))
        if (options.detach !== true && job.state !== 'done') deps.setExitCode(exitCode.failed)
      })
    })
}

function inputOf(options: ReplayOptions): ReplayInput {
  const { subscription, from, to, fromTime: fromMs, toTime: toMs, type, rate: perSecond, untilLive, reason } = options
  const { onlyMissing } = options
  const shadowed = options.filter !== undefined || options.filterNone === true || options.types !== undefined
  if (shadowed && options.shadow !== true) {
    throw new HooktideError('usage', '--filter, --filter-none and --types are for --shadow', {
      remedy: 'Add --shadow to see what would change; `hooktide subscriptions update` changes the subscription.',
    })
  }
  if (options.shadow === true && !shadowed) {
    throw new HooktideError('usage', '--shadow needs something that is changed', {
      remedy: "Give --filter '{…}', --filter-none or --types; --dry-run tells what would be sent as things are.",
    })
  }
  if (untilLive === true && (to ?? toMs) !== undefined) {
    throw new HooktideError('usage', '--until-live goes on to live traffic, so it has no --to')
  }
  const filter = options.filterNone === true ? null : options.filter
  const shadow = options.shadow === true ? { shadow: { filter, types: options.types } } : {}
  if (options.shadow === true && onlyMissing === true) {
    throw new HooktideError('usage', '--shadow compares filters, so it has no --only-missing')
  }
  return { subscription, from, to, fromMs, toMs, type, onlyMissing, perSecond, untilLive, reason, ...shadow }
}

function filterArgument(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Told below.
  }
  throw new InvalidArgumentError('Write a filter as JSON: {"body.total": [{"gte": 100}]} (docs/filters.md).')
}

const examples = `
Examples:
  hooktide replay --subscription billing --from-time 2h --dry-run
  hooktide replay --subscription billing --from-time 2026-05-01T10:00Z --to-time 2026-05-01T12:00Z --rate 100
  hooktide replay --subscription billing --from-time 6h --only-missing
  hooktide replay --subscription billing --from webhooks.events/0=1200,webhooks.events/3=80
  hooktide replay --subscription billing --shadow --filter '{"type": ["order.paid"]}'
The service works it (role router); interrupted, this command ends and the job goes on.
Exit codes: 0 done; 1 it failed, was cancelled or interrupted; 2 wrong input`
