import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { WrittenSubscription } from '../operations/contract.ts'
import { newId } from '../operations/subscription-input-rules.ts'
import { addBackfilled, type BackfillSince, backfillArgument } from './backfill.ts'
import type { CommandContext } from './context.ts'
import { unsetFields } from './endpoint-options.ts'
import { exitCode } from './exit-code.ts'
import { durationArgument } from './options.ts'
import { readText } from './read-text.ts'
import { examples } from './subscription-examples.ts'
import { type FieldOptions, fieldsOf, withFieldOptions } from './subscription-fields.ts'
import { parseSubscriptionFile } from './subscription-file.ts'
import { listText, planText, showText } from './subscription-view.ts'
import { unseenVariables } from './unseen-variables.ts'

interface AddOptions {
  readonly id?: string
  readonly verify?: boolean
  readonly backfill?: BackfillSince
  readonly json?: boolean
}

/** `hooktide subscriptions …`: who gets what. */
export function subscriptionsCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const subscriptions = new Command('subscriptions')
    .description('Who gets which events, where, and signed with what')
    .addHelpText('after', examples.all)
  withFieldOptions(subscriptions.command('add'))
    .description('add a subscription')
    .option('--id <id>', 'its id (default: made up)')
    .option('--verify', 'paused until its endpoint has answered a signed challenge')
    .option(
      '--backfill <since>',
      'past events first, then live ones: all, how long ago, or a date',
      backfillArgument(deps),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', examples.add)
    .action(async (options: FieldOptions & AddOptions) => {
      const { backfill } = options
      const id = options.id ?? (backfill === undefined ? undefined : newId())
      const input = given({ id, ...fieldsOf(options), secrets: references(options.secret) })
      const verify = options.verify === true ? { verify: true } : {}
      const written = await context.withOperations((ops) =>
        backfill === undefined
          ? ops.subscriptions.add(input, verify)
          : addBackfilled(ops, { ...input, id: id as string }, verify, backfill, context),
      )
      printOne(`added ${written.subscription.id}`, written, options.json === true)
    })

  subscriptions
    .command('list')
    .description('list subscriptions')
    .option('--tenant <tenant>', 'only of this tenant')
    .option('--status <status>', 'only with this status')
    .option('--reveal', 'print URL queries and header values in JSON')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async (options: { tenant?: string; status?: string; reveal?: boolean; json?: boolean }) => {
      const found = await context.withOperations((ops) => ops.subscriptions.list(options))
      if (options.json === true) printJson(found)
      else print(listText(found))
    })

  subscriptions
    .command('show')
    .description('show one subscription')
    .argument('<id>')
    .option('--reveal', 'print URL queries and header values, which may be secrets')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.show)
    .action(async (id: string, options: { reveal?: boolean; json?: boolean }) => {
      const { subscription } = await context.withOperations((ops) => ops.subscriptions.show(id, options))
      if (options.json === true) printJson(subscription)
      else print(showText(subscription))
    })

  withFieldOptions(subscriptions.command('update'))
    .description('change what is given, keep the rest')
    .argument('<id>')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.update)
    .action(async (id: string, options: FieldOptions & { json?: boolean }) => {
      const fields = given({ ...fieldsOf(options), secrets: references(options.secret) })
      for (const name of unsetFields(options, fields)) fields[name] = null
      if (Object.keys(fields).length === 0) {
        throw new HooktideError('usage', 'nothing to change was given', {
          remedy: '`hooktide subscriptions update --help` lists what can be.',
        })
      }
      const written = await context.withOperations((ops) => ops.subscriptions.change(id, fields))
      printOne(`updated ${id}`, written, options.json === true)
    })

  subscriptions
    .command('rotate-secret')
    .description('sign with a new secret, and for a while with the old one beside it')
    .argument('<id>')
    .option('--secret <ref>', 'the new one: kafka:new, env:NAME, file:PATH or kafka:ID', 'kafka:new')
    .option('--overlap <duration>', 'how long the old ones go on signing', durationArgument, 86_400_000)
    .option('--json', 'print JSON')
    .addHelpText('after', examples.rotate)
    .action(async (id: string, options: { secret: string; overlap: number; json?: boolean }) => {
      const { secret: ref, overlap: overlapMs } = options
      const written = await context.withOperations((ops) => ops.subscriptions.rotateSecret(id, { ref, overlapMs }))
      printOne(`rotated the secret of ${id}`, written, options.json === true)
    })

  subscriptions
    .command('remove')
    .description('remove subscriptions; their waiting deliveries are cancelled')
    .argument('<id...>')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.remove)
    .action(async (ids: string[], { json = false }: { json?: boolean }) => {
      await context.withOperations((ops) => ops.subscriptions.remove(ids))
      if (json) printJson({ removed: ids })
      else for (const id of ids) print(`removed ${id}`)
    })

  subscriptions
    .command('apply')
    .description('make the table as a file says (YAML, JSON, NDJSON; - for stdin)')
    .argument('<file>')
    .option('--prune', 'also remove what the file does not name')
    .option('--tenant <tenant>', 'prune only subscriptions of this tenant')
    .option('--dry-run', 'print the plan and change nothing; exit 1 if there is something to change')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.apply)
    .action(async (file: string, options: { prune?: boolean; tenant?: string; dryRun?: boolean; json?: boolean }) => {
      if (options.tenant !== undefined && options.prune !== true) {
        throw new HooktideError('usage', '--tenant limits --prune, which was not given')
      }
      const wanted = parseSubscriptionFile(await readText(deps, file), file)
      const prune = options.prune === true ? { tenant: options.tenant ?? null } : null
      const dryRun = options.dryRun === true
      const plan = await context.withOperations((ops) =>
        ops.subscriptions.apply(wanted, { prune, dryRun, label: file }),
      )
      plan.notes.forEach(context.note)
      hint(wanted)
      if (options.json === true) printJson(plan)
      else print(planText(plan))
      const differs = plan.plan.some(({ action }) => action !== 'unchanged')
      deps.setExitCode(dryRun && differs ? exitCode.failed : exitCode.ok)
    })

  function printOne(what: string, written: WrittenSubscription, json: boolean): void {
    const { subscription, newSecrets, notes } = written
    notes.forEach(context.note)
    hint(subscription)
    if (json) {
      printJson({ subscription, newSecrets })
      return
    }
    print(what)
    for (const { ref, secret } of newSecrets) {
      print(`${ref}: ${secret}`)
      context.note('The secret is shown this once. Give it to the receiver; it is kept sealed.')
    }
  }

  /** Behind an API it is the service that resolves: what this process sees says nothing. */
  function hint(written: unknown): void {
    const unseen = context.throughApi() ? null : unseenVariables(written, deps.env)
    if (unseen !== null) context.note(unseen)
  }

  return subscriptions
}

function references(refs: readonly string[] | undefined): { ref: string }[] | undefined {
  return refs?.map((ref) => ({ ref }))
}

function given(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
