import { Command } from 'commander'
import type { TierOperations } from '../operations/contract.ts'
import type { TierFound } from '../operations/tier-read.ts'
import type { CommandContext } from './context.ts'
import { rateArgument } from './options.ts'
import { type OrderOptions, orderText, withDuration, withOrderOptions } from './order-options.ts'
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
      const { tiers: found } = await context.withOperations((ops) => ops.tiers.list())
      if (json) printJson({ tiers: found })
      else print(tiersText(found, deps.clock.now()))
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
    what: Parameters<TierOperations['order']>[1],
    options: OrderOptions & { for?: number },
  ): Promise<void> {
    const { order } = await context.withOperations((ops) =>
      ops.tiers.order(name, what, { ...options, forMs: options.for }),
    )
    if (options.json === true) printJson({ order })
    else print(`${order.target} ${orderText(order, deps.clock.now())}`)
  }

  return tiers
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
  '\nEvery instance obeys within a second, and after a restart.\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
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
