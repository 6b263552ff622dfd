import { Command } from 'commander'
import { sleep } from '../operations/sleep.ts'
import type { CommandContext } from './context.ts'
import { durationArgument, listArgument } from './options.ts'
import { statusText } from './status-view.ts'

interface Options {
  readonly watch?: boolean
  readonly every: number
  readonly metricsUrl?: readonly string[]
  readonly json?: boolean
}

/** `hooktide status`: what Kafka says of the work, whether or not a service runs. */
export function statusCommand(context: CommandContext): Command {
  const { deps, print } = context
  return new Command('status')
    .description('Lanes, waiting deliveries, tiers, lag: read from Kafka, changes nothing')
    .option('--watch', 'again and again until interrupted')
    .option('--every <duration>', 'how often, with --watch', durationArgument, 2000)
    .option('--metrics-url <url>', "an instance's /metrics, for what is in flight (repeat for several)", listArgument)
    .option('--json', 'print JSON; with --watch one object per line')
    .addHelpText('after', examples)
    .action(async (options: Options) => {
      await context.withOperations(async (ops) => {
        const show = async () => {
          const status = await ops.status(options.metricsUrl ?? [])
          if (options.json === true) {
            if (options.watch === true) print(JSON.stringify(status))
            else context.printJson(status)
            return
          }
          // Home and clear below: no flicker, and what was on the screen before stays in the scrollback.
          const text = statusText(status)
          if (options.watch === true && deps.stdout.isTTY) deps.stdout.write(`\u001b[2J\u001b[H${text}\n`)
          else print(options.watch === true ? `${text}\n` : text)
        }
        await show()
        while (options.watch === true && !deps.signal.aborted) {
          await sleep(deps.clock, options.every, deps.signal)
          if (!deps.signal.aborted) await show()
        }
      })
    })
}

const examples = `
Examples:
  hooktide status
  hooktide status --watch --metrics-url http://127.0.0.1:9400/metrics
  hooktide status --json | jq '.lanes[] | select(.ready > 0)'
Exit codes: 0 read, 1 it could not be read, 2 wrong input`
