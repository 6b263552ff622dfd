import type { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import { parseEvent } from '../core/event-format.ts'
import { trySubscription } from '../core/subscription-trial.ts'
import { topicNames } from '../operations/names.ts'
import { eventRecord } from '../operations/produce-event.ts'
import type { CommandContext } from './context.ts'
import { exitCode } from './exit-code.ts'
import { readBytes } from './read-text.ts'

interface Options {
  readonly type?: string
  readonly tenant?: string
  readonly key?: string
  readonly contentType?: string
  readonly json?: boolean
}

/** Adds `try` to `hooktide subscriptions`: what would become of an event, with nothing produced and nothing sent. */
export function withTryCommand(subscriptions: Command, context: CommandContext): Command {
  const { deps, print, printJson } = context
  subscriptions
    .command('try')
    .description('would it get this event, and with what body? nothing is produced or sent')
    .argument('<id>')
    .argument('[file]', "the event's body; - or nothing: stdin")
    .option('--type <type>', 'event type; without it the body must be an envelope with "type"')
    .option('--tenant <tenant>', "tenant of the event (default: the subscription's)")
    .option('--key <key>', 'ordering key')
    .option('--content-type <type>', 'content type of the body (default: application/json)')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async (id: string, file: string | undefined, options: Options) => {
      const body = await readBytes(deps, file ?? '-')
      const { config } = context.load()
      const limits = { maxBytes: config.router.maxEventBytes, maxHeaders: config.router.maxHeaders }
      const topic = topicNames(config).events[0] as string
      const { subscription } = await context.withOperations((ops) => ops.subscriptions.show(id))
      // Only with a header of ours is the body not read as an envelope.
      const tenant = options.tenant ?? (options.type === undefined ? undefined : subscription.tenant)
      const record = eventRecord(body, { ...options, tenant, topic, partitions: 1, limits }, 0, false, 'the event')
      const key = record.key === null ? null : Buffer.from(record.key)
      const at = { topic, partition: 0 }
      const event = parseEvent({ ...record, key, offset: 0, timestampMs: deps.clock.now() }, at, limits)
      if (!event.ok) throw new HooktideError('usage', `the event would be rejected: ${event.reason}`)
      const trial = trySubscription(subscription, event.value)
      const text = trial.body?.toString() ?? null
      if (options.json === true) printJson({ id, ...trial, body: text })
      else {
        print(trial.matches ? `${id} gets it` : `${id} does not get it`)
        for (const reason of trial.reasons) print(`  ${reason}`)
        if (text !== null) print(`content-type: ${trial.contentType}\n\n${text}`)
      }
      deps.setExitCode(text === null ? exitCode.failed : exitCode.ok)
    })
  return subscriptions
}

const examples = `
Examples:
  hooktide subscriptions try billing --type order.created order.json
  echo '{"total":5}' | hooktide subscriptions try billing --type order.created --json
Exit codes: 0 it would be sent, 1 it would not, or it failed, 2 wrong input`
