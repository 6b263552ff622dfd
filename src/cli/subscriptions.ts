import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import { type GuardPolicy, guardPolicy } from '../core/guard-policy.ts'
import { problemText } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Cluster } from '../operations/cluster.ts'
import { topicNames } from '../operations/names.ts'
import { planSubscriptions, type SubscriptionPlan } from '../operations/subscription-plan.ts'
import { type MadeSecret, makeSealedSecret, rotated } from '../operations/subscription-secret.ts'
import { found, SubscriptionStore } from '../operations/subscription-store.ts'
import { type InputContext, validateSubscriptionInput } from '../schema/subscription-input.ts'
import type { CommandContext } from './context.ts'
import { refuseBlocked } from './endpoint-guard.ts'
import { unsetFields } from './endpoint-options.ts'
import { exitCode } from './exit-code.ts'
import { durationArgument } from './options.ts'
import { readText } from './read-text.ts'
import { examples } from './subscription-examples.ts'
import { type FieldOptions, fieldsOf, withFieldOptions } from './subscription-fields.ts'
import { parseSubscriptionFile } from './subscription-file.ts'
import { writeVerified } from './subscription-verify.ts'
import { listJson, listText, planJson, planText, showText, visible } from './subscription-view.ts'

/** `hooktide subscriptions …`: who gets what. */
export function subscriptionsCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const subscriptions = new Command('subscriptions')
    .description('Who gets which events, where, and signed with what')
    .addHelpText('after', examples.all)
  const open = <T>(run: (store: SubscriptionStore, config: Config, cluster: Cluster) => Promise<T>) =>
    context.withCluster((cluster, config) =>
      run(new SubscriptionStore(cluster.kafka, topicNames(config).subscriptions, deps.clock), config, cluster),
    )

  withFieldOptions(subscriptions.command('add'))
    .description('add a subscription')
    .option('--id <id>', 'its id (default: made up)')
    .option('--verify', 'paused until its endpoint has answered a signed challenge')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.add)
    .action(async (options: FieldOptions & { id?: string; verify?: boolean; json?: boolean }) => {
      await open(async (store, config, cluster) => {
        const id = options.id ?? `sub_${randomBytes(9).toString('base64url').replace(/[-_]/g, 'x')}`
        const table = await store.read()
        if (table.has(id)) {
          throw new HooktideError('subscription.invalid', `there is a subscription ${id} already`, {
            remedy: 'Change it with `hooktide subscriptions update`, or give another --id.',
          })
        }
        const fields = { ...fieldsOf(options), secrets: references(options.secret) }
        const checked = checkedInput(fields, { nowMs: deps.clock.now(), id, guard: guardOf(config) })
        await refuseBlocked(context, config, [checked])
        const { secrets, made } = await makeAsked(cluster, config, checked)
        const [subscription] = await writeVerified(
          context,
          partsOf(store, config, cluster),
          [{ ...checked, secrets }],
          {
            verify: options.verify === true || config.endpoints.challenge === 'on',
            secretIsNew: made.length > 0,
          },
        )
        printOne(`added ${id}`, subscription as Subscription, made, options.json === true)
      })
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
      const all = await open((store) => store.read())
      const entries = new Map(
        [...all].filter(([, entry]) => {
          if (!entry.ok) return options.tenant === undefined && options.status === undefined
          const { tenant, status } = entry.value
          return tenant === (options.tenant ?? tenant) && status === (options.status ?? status)
        }),
      )
      if (options.json === true) printJson(listJson(entries, options.reveal === true))
      else print(listText(entries))
    })

  subscriptions
    .command('show')
    .description('show one subscription')
    .argument('<id>')
    .option('--reveal', 'print URL queries and header values, which may be secrets')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.show)
    .action(async (id: string, options: { reveal?: boolean; json?: boolean }) => {
      const subscription = visible(found(await open((store) => store.read()), id), options.reveal === true)
      if (options.json === true) printJson(subscription)
      else print(showText(subscription))
    })

  withFieldOptions(subscriptions.command('update'))
    .description('change what is given, keep the rest')
    .argument('<id>')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.update)
    .action(async (id: string, options: FieldOptions & { json?: boolean }) => {
      await open(async (store, config, cluster) => {
        const existing = found(await store.read(), id)
        const fields = fieldsOf(options)
        const unset = unsetFields(options, fields)
        if (Object.keys(fields).length + unset.length === 0 && options.secret === undefined) {
          throw new HooktideError('usage', 'nothing to change was given', {
            remedy: '`hooktide subscriptions update --help` lists what can be.',
          })
        }
        const { statusReason, ...rest } = existing
        const kept = fields.status === undefined && statusReason !== undefined ? { ...rest, statusReason } : rest
        const secrets = options.secret === undefined ? existing.secrets : references(options.secret)
        const retry = fields.retry === undefined ? existing.retry : { ...existing.retry, ...(fields.retry as object) }
        const input: Record<string, unknown> = { ...kept, ...fields, secrets, retry }
        for (const name of unset) delete input[name]
        const checked = checkedInput(input, { nowMs: deps.clock.now(), existing, guard: guardOf(config) })
        if (checked.url !== existing.url) await refuseBlocked(context, config, [checked])
        const asked = await makeAsked(cluster, config, checked)
        const moved = checked.url !== existing.url
        const changed = { ...checked, secrets: asked.secrets }
        const [subscription] = await writeVerified(context, partsOf(store, config, cluster), [changed], {
          verify: moved && config.endpoints.challenge === 'on',
          secretIsNew: asked.made.length > 0,
        })
        printOne(`updated ${id}`, subscription as Subscription, asked.made, options.json === true)
      })
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
      await open(async (store, config, cluster) => {
        const existing = found(await store.read(), id)
        const nowMs = deps.clock.now()
        const secrets = rotated(existing.secrets, options.secret, nowMs, options.overlap)
        const checked = checkedInput({ ...existing, secrets }, { nowMs, existing, guard: guardOf(config) })
        const asked = await makeAsked(cluster, config, checked)
        const subscription = { ...checked, secrets: asked.secrets }
        await store.write([{ id, subscription }])
        printOne(`rotated the secret of ${id}`, subscription, asked.made, options.json === true)
      })
    })

  subscriptions
    .command('remove')
    .description('remove subscriptions; their waiting deliveries are cancelled')
    .argument('<id...>')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.remove)
    .action(async (ids: string[], { json = false }: { json?: boolean }) => {
      await open(async (store) => {
        const table = await store.read()
        const unknown = ids.filter((id) => !table.has(id))
        if (unknown.length > 0) {
          throw new HooktideError('not-found', `there is no subscription ${unknown.join(', ')}; nothing was removed`, {
            remedy: '`hooktide subscriptions list` shows those there are.',
          })
        }
        await store.write(ids.map((id) => ({ id, subscription: null })))
      })
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
      await open(async (store, config, cluster) => {
        const plan = planSubscriptions(wanted, await store.read(), {
          nowMs: deps.clock.now(),
          guard: guardOf(config),
          prune: options.prune === true ? { tenant: options.tenant ?? null } : null,
        })
        if (plan.problems.length > 0) {
          throw new HooktideError('subscription.invalid', `${file} was not applied: it has problems`, {
            details: plan.problems,
            remedy: 'Correct every line named.',
          })
        }
        const changed = plan.items.filter(({ action }) => action !== 'unchanged')
        await refuseBlocked(context, config, newEndpoints(plan))
        if (options.dryRun !== true) {
          const verify = config.endpoints.challenge === 'on'
          const challenged = verify ? newEndpoints(plan) : []
          await store.write(changed.filter(({ id }) => !challenged.some((each) => each.id === id)))
          const parts = partsOf(store, config, cluster)
          if (verify) await writeVerified(context, parts, challenged, { verify, secretIsNew: false })
        }
        if (options.json === true) printJson(planJson(plan, options.dryRun !== true))
        else print(planText(plan))
        deps.setExitCode(options.dryRun === true && changed.length > 0 ? exitCode.failed : exitCode.ok)
      })
    })

  const partsOf = (store: SubscriptionStore, config: Config, cluster: Cluster) => ({
    ...{ store, config, cluster },
    ...{ clock: deps.clock, endpoints: deps.endpoints },
  })

  /** Makes the secrets that `kafka:new` asks for; called when everything else is known to be good. */
  async function makeAsked(cluster: Cluster, config: Config, checked: Subscription) {
    const secrets = [...checked.secrets]
    const made: MadeSecret[] = []
    for (const [i, secret] of secrets.entries()) {
      if (secret.ref !== 'kafka:new') continue
      const parts = { kafka: cluster.kafka, config, clock: deps.clock, tools: deps.secrets }
      const one = await makeSealedSecret(parts, topicNames(config).secrets, checked.id)
      made.push(one)
      secrets[i] = { ...secret, ref: one.ref }
    }
    return { secrets, made }
  }

  function printOne(what: string, subscription: Subscription, made: readonly MadeSecret[], json: boolean): void {
    if (json) {
      const shown = made.map(({ ref, secret }) => ({ ref, secret: secret.reveal() }))
      printJson({ subscription: visible(subscription, false), newSecrets: shown })
      return
    }
    print(what)
    for (const { ref, secret } of made) {
      print(`${ref}: ${secret.reveal()}`)
      context.note('The secret is shown this once. Give it to the receiver; it is kept sealed.')
    }
  }

  return subscriptions
}

function references(refs: readonly string[] | undefined): { ref: string }[] | undefined {
  return refs?.map((ref) => ({ ref }))
}

function guardOf(config: Config): GuardPolicy {
  const policy = guardPolicy(config.http)
  if (!policy.ok) throw new HooktideError('config.invalid', `http: ${policy.reason}`)
  return policy.value
}

/** Subscriptions that would be sent to where they were not before. */
function newEndpoints(plan: SubscriptionPlan): Subscription[] {
  return plan.items.flatMap(({ action, changes, subscription }) =>
    subscription !== null && (action === 'create' || changes.some(({ field }) => field === 'url' || field === 'record'))
      ? [subscription]
      : [],
  )
}

function checkedInput(input: unknown, context: InputContext): Subscription {
  const checked = validateSubscriptionInput(input, context)
  if (checked.ok) return checked.value
  const count = checked.problems.length === 1 ? 'a problem' : `${checked.problems.length} problems`
  throw new HooktideError('subscription.invalid', `the subscription has ${count}`, {
    details: checked.problems.map(problemText),
    remedy: 'Correct every line named.',
  })
}
