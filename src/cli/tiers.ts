import { Command } from 'commander'
import type { Config } from '../config.ts'
import type { Control } from '../core/control.ts'
import { HooktideError } from '../core/error.ts'
import { type Backlog, readBacklog } from '../operations/backlog.ts'
import type { Cluster } from '../operations/cluster.ts'
import { ControlStore, inForce } from '../operations/control-store.ts'
import { groupNames, topicNames } from '../operations/names.ts'
import { partitionsOf } from '../operations/read-topic.ts'
import type { CommandContext } from './context.ts'
import { rateArgument } from './options.ts'
import { type OrderOptions, orderOf, orderText, withDuration, withOrderOptions } from './order-options.ts'
import { ago, table, time } from './text.ts'

/** `hooktide tiers …`: hold or slow down what comes back from the retry topics. */
export function tiersCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const tiers = new Command('tiers')
    .description('Retry tiers: list, pause, throttle, resume. Due times are kept meanwhile')
    .addHelpText('after', examples.all)

  tiers
    .command('list')
    .description('list the tiers, what waits in them and which orders are in force')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async ({ json = false }: { json?: boolean }) => {
      await context.withCluster(async (cluster, config) => {
        const found = await readTiers(cluster, config, deps.clock.now(), storeOf(cluster, config))
        if (json) printJson({ tiers: found })
        else print(tiersText(found, deps.clock.now()))
      })
    })

  withOrderOptions(withDuration(tiers.command('pause')))
    .description('nothing leaves the tier until it is resumed')
    .argument('<tier>')
    .addHelpText('after', examples.pause)
    .action((tier: string, options: OrderOptions & { for?: number }) => give(tier, { order: 'pause' }, options))

  withOrderOptions(withDuration(tiers.command('throttle')))
    .description('at most so many leave the tier per second, over all lanes in equal parts')
    .argument('<tier>')
    .requiredOption('--per-second <n>', 'how many', rateArgument)
    .addHelpText('after', examples.throttle)
    .action((tier: string, options: OrderOptions & { perSecond: number; for?: number }) =>
      give(tier, { order: 'throttle', perSecond: options.perSecond }, options),
    )

  withOrderOptions(tiers.command('resume'))
    .description('take back a pause or a throttle')
    .argument('<tier>')
    .addHelpText('after', examples.resume)
    .action((tier: string, options: OrderOptions) => give(tier, { order: 'resume' }, options))

  async function give(
    name: string,
    what: Pick<Control, 'order'> & Partial<Control>,
    options: OrderOptions & { for?: number },
  ): Promise<void> {
    await context.withCluster(async (cluster, config) => {
      const target = tierName(config, name)
      const order = orderOf(context, { kind: 'tier', target, ...what }, options)
      await storeOf(cluster, config).give(order)
      if (options.json === true) printJson({ order })
      else print(`${target} ${orderText(order, deps.clock.now())}`)
    })
  }

  const storeOf = ({ kafka }: Cluster, config: Config) =>
    new ControlStore(kafka, topicNames(config).control, deps.clock)
  return tiers
}

/** Orders name tiers as the configuration does; the topic's whole name will do too. */
function tierName(config: Config, name: string): string {
  const { prefix, tiers } = config.topics
  const known = tiers.find((tier) => tier.name === name || prefix + tier.name === name)
  if (known !== undefined) return known.name
  throw new HooktideError('not-found', `there is no tier ${name.slice(0, 100)}`, {
    remedy: `Give one of ${tiers.map((tier) => tier.name).join(', ')} (topics.tiers).`,
  })
}

interface TierFound {
  readonly tier: string
  readonly delayMs: number
  readonly state: 'running' | 'paused' | 'throttled'
  readonly perSecond: number | null
  readonly order: Control | null
  readonly waiting: number
  readonly exact: boolean
}

async function readTiers(
  { kafka }: Cluster,
  config: Config,
  nowMs: number,
  store: ControlStore,
): Promise<readonly TierFound[]> {
  const orders = await store.read()
  const reader = kafka.reader()
  try {
    return await Promise.all(
      config.topics.tiers.map(async ({ name, delayMs }) => {
        const topic = config.topics.prefix + name
        await partitionsOf(kafka, topic)
        const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
        const at = [...ends.keys()].map((partition) => ({ topic, partition }))
        const committed = await kafka.offsets.committed(groupNames(config).deliverer, at)
        const backlogs: Backlog[] = await Promise.all(
          committed.map((c) => readBacklog(reader, c, starts.get(c.partition) ?? 0, ends.get(c.partition) ?? 0)),
        )
        const given = orders.get(`tier:${name}`)?.order ?? null
        const order = given !== null && inForce(given, nowMs) ? given : null
        return {
          tier: name,
          delayMs,
          state: order === null ? 'running' : order.order === 'pause' ? 'paused' : 'throttled',
          perSecond: order?.perSecond ?? null,
          order,
          waiting: backlogs.reduce((sum, { depth }) => sum + depth, 0),
          exact: backlogs.every(({ exact }) => exact),
        } as const
      }),
    )
  } finally {
    await reader.close()
  }
}

function tiersText(found: readonly TierFound[], nowMs: number): string {
  return table(
    [
      { title: 'TIER', max: 24 },
      { title: 'DELAY' },
      { title: 'WAITING', right: true },
      { title: 'STATE' },
      { title: 'BY', max: 20 },
      { title: 'ENDS', max: 20 },
      { title: 'REASON', max: 20 },
    ],
    found.map(({ tier, delayMs, state, perSecond, order, waiting, exact }) => [
      tier,
      ago(delayMs),
      exact ? String(waiting) : `~${waiting}`,
      state === 'throttled' ? `${perSecond}/s` : state,
      order?.by ?? '',
      order?.untilMs === undefined
        ? ''
        : order.untilMs - nowMs < 86_400_000
          ? `in ${ago(order.untilMs - nowMs)}`
          : time(order.untilMs),
      order?.reason ?? '',
    ]),
  )
}

const codes =
  '\nEvery instance obeys within a second, and after a restart.\nExit codes: 0 done, 1 it failed or was not found, 2 wrong usage'
const examples = {
  all: `
Examples:
  hooktide tiers list
  hooktide tiers pause retry-5m --for 30m --reason 'their database is being restored'
  hooktide tiers throttle retry-30m --per-second 20
  hooktide tiers resume retry-5m${codes}`,
  list: `
Examples:
  hooktide tiers list
  hooktide tiers list --json${codes}`,
  pause: `
Examples:
  hooktide tiers pause retry-10s
  hooktide tiers pause retry-2h --for 1h --reason 'release freeze' --json
What is due meanwhile goes when the tier is resumed, in order; nothing is purged, and no attempt is spent.${codes}`,
  throttle: `
Examples:
  hooktide tiers throttle retry-1m --per-second 20
  hooktide tiers throttle retry-1m --per-second 0.5 --for 2h
Each of the topic's lanes gets an equal part of the rate.${codes}`,
  resume: `
Examples:
  hooktide tiers resume retry-10s
  hooktide tiers resume retry-10s --reason 'restored' --json${codes}`,
}
