import { Command } from 'commander'
import type { CommandContext } from './context.ts'
import type { RehearsalSummary } from './deps.ts'
import { exitCode } from './exit-code.ts'
import type { GlobalOptions } from './open-operations.ts'
import { countArgument } from './options.ts'

/** `hooktide rehearse`: the command line of it; what it does comes in by `deps.rehearse`. */
export function rehearseCommand({ deps, print, printJson }: CommandContext): Command {
  return new Command('rehearse')
    .description(
      'Rehearse an outage on topics of its own: stop, build a backlog, start, redrive the dead, check the ids',
    )
    .option('--events <n>', 'how many of each phase', countArgument(10, 1_000_000), 2_000)
    .option('--json', 'print the report as JSON')
    .addHelpText('after', examples)
    .action(async ({ events, json = false }: { events: number; json?: boolean }, command: Command) => {
      const path = command.optsWithGlobals<GlobalOptions>().config ?? (deps.env.HOOKTIDE_CONFIG || undefined)
      const report = await deps.rehearse({ events, path })
      if (json) printJson(report)
      else print(reportText(report))
      deps.setExitCode(report.ok ? exitCode.ok : exitCode.failed)
    })
}

function reportText(report: RehearsalSummary): string {
  const { events, firstDeliveryS, recoveryS, recoveredPerSecond, redriveS, checks, prefix } = report
  const seconds = (s: number | null) => (s === null ? 'not reached' : `${s.toFixed(1)} s`)
  return [
    `${'first delivery after a start'.padEnd(32)}${seconds(firstDeliveryS)}`,
    `${`backlog of ${events} delivered`.padEnd(32)}${seconds(recoveryS)}${recoveredPerSecond === null ? '' : `, ${Math.round(recoveredPerSecond)}/s`}`,
    `${`${events} dead redriven`.padEnd(32)}${seconds(redriveS)}`,
    '',
    ...checks.map(({ what, ok, found }) => `${ok ? 'ok    ' : 'FAILED'}  ${what} (${found})`),
    '',
    `The topics ${prefix}* stay on the broker; nothing else does. Delete them when you have looked.`,
  ].join('\n')
}

const examples = `
Examples:
  hooktide rehearse
  hooktide rehearse --events 50000 --json
Uses the configuration and the cluster as they are, with topics and groups of its own: what is live is not touched,
but shares the brokers. It needs the rights of \`topics apply\` on topics that begin with "rehearse.".
Exit codes: 0 all checks held, 1 one did not, 2 wrong input`
