import { Command } from 'commander'
import type { CommandContext } from './context.ts'
import { exitCode } from './exit-code.ts'
import { countArgument } from './options.ts'

/** `hooktide demo`: the command line of it; what it does comes in by `deps.runDemo`. */
export function demoCommand({ deps }: CommandContext): Command {
  return new Command('demo')
    .description('Deliver real GitHub payloads to eight local endpoints, good and bad, and check every delivery')
    .option('--events <n>', 'how many events', countArgument(1, 1_000_000))
    .option('--json', 'print the summary as JSON')
    .addHelpText('after', examples)
    .action(async ({ events, json = false }: { events?: number; json?: boolean }) => {
      const good = await deps.runDemo({ json, events: events ?? null })
      deps.setExitCode(good ? exitCode.ok : exitCode.failed)
    })
}

const examples = `
Examples:
  hooktide demo                     starts a local broker when KAFKA_BROKERS is not set
  hooktide demo --events 2000 --json
Exit codes: 0 everything delivered, in order, signed; 1 not; 2 wrong input`
