import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import { type ErasePlan, eraseAll, planErase } from '../operations/erase.ts'
import type { StateErased } from '../operations/state-tools.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { oneLine, plural, table, time } from './text.ts'

interface EraseOptions {
  subscription?: string
  tenant?: string
  event?: string
  dryRun?: boolean
  json?: boolean
}

/** `hooktide erase`: what is known of a subscription, a tenant or an event, as far as a log allows it. */
export function eraseCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  return new Command('erase')
    .description('Erase a subscription, a tenant or an event, and say what the log keeps until when')
    .option('--subscription <id>', 'the subscription, its secrets, its orders, its rows')
    .option('--tenant <tenant>', 'all of that, for every subscription of the tenant')
    .option('--event <id>', 'the rows of the deliveries of this event, and its body in the object store')
    .option('--dry-run', 'only say what would go and what would stay')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async (options: EraseOptions) => {
      const what = erased(options)
      const config = context.load().config
      const state = deps.state(config)
      try {
        await context.withCluster(async (cluster) => {
          const objects = deps.objects(config)
          const progress = createProgress(deps.stderr, deps.clock)
          const parts = { cluster, config, clock: deps.clock, state, objects, progress }
          const plan = await planErase(parts, what)
          const done = options.dryRun === true ? null : await eraseAll(parts, plan)
          if (options.json === true) printJson({ ...plan, done })
          else print(planText(plan, done))
        })
      } finally {
        await state.close()
      }
    })
}

function erased({ subscription, tenant, event }: EraseOptions): StateErased {
  const given = [
    ...(subscription === undefined ? [] : [{ by: 'subscription' as const, id: subscription }]),
    ...(tenant === undefined ? [] : [{ by: 'tenant' as const, id: tenant }]),
    ...(event === undefined ? [] : [{ by: 'event' as const, id: event }]),
  ]
  const [what] = given
  if (what !== undefined && given.length === 1) return what
  throw new HooktideError('usage', 'erase takes exactly one of --subscription, --tenant and --event', {
    remedy: 'Name one; several are several calls.',
  })
}

type Done = Awaited<ReturnType<typeof eraseAll>> | null

function planText(plan: ErasePlan, done: Done): string {
  const { what, subscriptions, secrets, orders, deliveries, remains } = plan
  const rows = deliveries === null ? 'no delivery state here' : plural(deliveries, 'delivery', 'deliveries')
  const lines = [
    `${done === null ? 'would erase' : 'erased'} ${what.by} ${what.id}`,
    `  tables  ${plural(subscriptions.length, 'subscription')}, ${plural(secrets.length, 'sealed secret')}, ${plural(orders.length, 'order')}`,
    `  state   ${rows}`,
    `  objects ${objectsText(plan, done?.objects ?? null)}`,
    'what the log still holds, at the longest until:',
  ].map(oneLine)
  const left = remains.map(({ topic, goneByMs, how }) => {
    const until = goneByMs === null ? (how === 'compaction' ? 'its next compaction' : 'for ever') : time(goneByMs)
    return [`  ${topic}`, until, how]
  })
  return [...lines, table([{ title: '  topic' }, { title: 'until' }, { title: 'by' }], left)].join('\n')
}

function objectsText({ what, objects }: ErasePlan, removed: number | null): string {
  if (objects === null) return 'no object store here'
  if (what.by === 'subscription') return "none: a stored body is its event's, see --event and --tenant"
  const { remove, shared } = objects
  const kept = shared === 0 ? '' : `; ${plural(shared, 'stays', 'stay')}, others point there too`
  return `${plural(removed ?? remove.length, 'stored body', 'stored bodies')}${kept}`
}

const examples = `
Examples:
  hooktide erase --subscription billing --dry-run
  hooktide erase --tenant acme
  hooktide erase --event 8f14e45f
With an object store its bodies go too, so a delivery that still waits for one of them ends as a dead letter. Looking
for them reads all events and deliveries.
Nothing can be taken out of the middle of a log: topics that are not compacted hold what they hold until their
retention takes it, and a state that is rebuilt before then shows it again. Deliveries that still wait for an erased
subscription are cancelled; when they are, run it once more. Producers' own topics are theirs.
Exit codes: 0 done, 1 it failed, 2 wrong input`
