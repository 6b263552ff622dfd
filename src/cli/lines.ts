import { Command, Option } from 'commander'
import type { Config } from '../config.ts'
import type { Control } from '../core/control.ts'
import { HooktideError } from '../core/error.ts'
import { subscriptionOfLine } from '../core/line.ts'
import type { Cluster } from '../operations/cluster.ts'
import { ControlStore } from '../operations/control-store.ts'
import { chooseLine, readHead, readLines, readParked, type StandingLine } from '../operations/line-read.ts'
import { topicNames } from '../operations/names.ts'
import type { LogReader } from '../ports.ts'
import type { CommandContext } from './context.ts'
import { detailsJson, detailsText, lineJson, linesTable } from './line-view.ts'
import { countArgument } from './options.ts'
import { type OrderOptions, orderOf, orderText, withOrderOptions } from './order-options.ts'
import { oneLine, plural } from './text.ts'

interface Choice {
  readonly subscription?: string
  readonly key?: string
}

interface Opened {
  readonly cluster: Cluster
  readonly config: Config
  readonly reader: LogReader
  readonly store: ControlStore
  readonly standing: readonly StandingLine[]
}

/** `hooktide lines …`: what waits behind something, and getting it on its way. */
export function linesCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const lines = new Command('lines')
    .description('Lines that wait: behind a head that is retried or dead, or parked')
    .addHelpText('after', examples.all)
  const withLine = (command: Command) =>
    command
      .argument('[line...]', 'as `lines list` shows it: SUBSCRIPTION k KEY, SUBSCRIPTION s or SUBSCRIPTION o')
      .option('--subscription <id>', 'instead: the line of this subscription')
      .option('--key <key>', 'with --subscription: the line of this ordering key')

  lines
    .command('list')
    .description('list lines that are not simply open, the longest-standing first')
    .option('--subscription <id>', 'only of this subscription')
    .addOption(new Option('--state <state>', 'only in this state').choices(['blocked', 'draining', 'stopped']))
    .option('--limit <n>', 'at most so many', countArgument(1, 1_000_000), 100)
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async (options: { subscription?: string; state?: string; limit: number; json?: boolean }) => {
      const all = (await open(async ({ standing }) => standing))
        .filter(({ state }) => options.state === undefined || state.state === options.state)
        .filter(({ state }) => [undefined, subscriptionOfLine(state.line)].includes(options.subscription))
        .sort((a, b) => a.state.sinceMs - b.state.sinceMs)
      const shown = all.slice(0, options.limit)
      if (options.json === true) return printJson({ lines: shown.map(lineJson), total: all.length })
      print(all.length === 0 ? 'No line waits.' : linesTable(shown, deps.clock.now()))
      if (all.length > shown.length) print(`${all.length - shown.length} more: --limit`)
    })

  withLine(lines.command('show'))
    .description('show one line: its head, what is parked behind it, why it stands')
    .option('--limit <n>', 'how many of the parked deliveries', countArgument(0, 10_000), 10)
    .option('--json', 'print JSON')
    .addHelpText('after', examples.show)
    .action(async (line: string[], options: Choice & { limit: number; json?: boolean }) => {
      await open(async ({ cluster, config, reader, store, standing }) => {
        const found = standingOnes(chooseLine({ line, ...options }, standing), standing)
        const orders = await store.read()
        const details = []
        for (const one of found) {
          details.push({
            line: one,
            head: await readHead(cluster.kafka, reader, config, one),
            parked: await readParked(reader, config, one, options.limit),
            order: orders.get(`line:${one.state.line}`)?.order ?? null,
          })
        }
        if (options.json === true) printJson({ lines: details.map(detailsJson) })
        else print(details.map((one) => detailsText(one, deps.clock.now())).join('\n\n'))
      })
    })

  withOrderOptions(withLine(lines.command('release')))
    .description('a blocked or stopped line goes on; a blocked head is still retried, on its own')
    .addHelpText('after', examples.release)
    .action(async (line: string[], options: Choice & OrderOptions) => {
      await open(async (opened) => {
        const key = chooseLine({ line, ...options }, opened.standing)
        const head = standingHead(key, opened.standing)
        if (head === null) return told(options, null, `${key} goes on already`)
        await release(opened, key, head, options)
      })
    })

  withOrderOptions(withLine(lines.command('skip')))
    .description('the head of a line is cancelled, and the line goes on')
    .option('--dead', 'send the head to the dead letters instead')
    .addHelpText('after', examples.skip)
    .action(async (line: string[], options: Choice & OrderOptions & { dead?: boolean }) => {
      await open(async (opened) => {
        const key = chooseLine({ line, ...options }, opened.standing)
        const head = standingHead(key, opened.standing)
        if (head === null) {
          throw new HooktideError('check.failed', `nothing stands at the front of ${key}: it goes on`, {
            remedy: '`hooktide lines cancel` cancels all that waits in it.',
          })
        }
        // A dead head is settled: cancelled, it could not be redriven any more.
        if (standingOnes(key, opened.standing).some(({ state }) => state.state === 'stopped'))
          return release(opened, key, head, options)
        const args = { line: key, ...(options.dead === true ? { to: 'dead' } : {}) }
        const order = orderOf(context, { kind: 'delivery', target: head, order: 'cancel', args }, options)
        await opened.store.give(order)
        told(options, order, `${head}, the head of ${key}, ${orderText(order, deps.clock.now())}; the line goes on`)
      })
    })

  withOrderOptions(withLine(lines.command('cancel')))
    .description('everything that waits in a line now is cancelled; what comes later is not')
    .option('--dead', 'send it to the dead letters instead')
    .option('--yes', 'do it: this can not be undone')
    .addHelpText('after', examples.cancel)
    .action(async (line: string[], options: Choice & OrderOptions & { dead?: boolean; yes?: boolean }) => {
      await open(async ({ store, standing }) => {
        const key = chooseLine({ line, ...options }, standing)
        const parked = standing
          .filter(({ state }) => state.line === key)
          .reduce((sum, { state }) => sum + state.count, 0)
        if (options.yes !== true) {
          throw new HooktideError(
            'usage',
            `this would cancel ${plural(parked, 'parked delivery', 'parked deliveries')} of ${key}, its head, and what is under way to it`,
            {
              remedy: 'Say --yes to do it.',
            },
          )
        }
        const args: NonNullable<Control['args']> = options.dead === true ? { to: 'dead' } : {}
        const order = orderOf(context, { kind: 'line', target: key, order: 'cancel', args }, options)
        await store.give(order)
        told(options, order, `${key}, with ${parked} parked, ${orderText(order, deps.clock.now())}`)
      })
    })

  async function release(opened: Opened, key: string, head: string, options: OrderOptions): Promise<void> {
    const before = await opened.store.order({ kind: 'line', target: key })
    // One order per line: the cancel it takes the place of still holds for what was before it.
    const args = { head, ...cancelKept(before) }
    const order = orderOf(context, { kind: 'line', target: key, order: 'resume', args }, options)
    await opened.store.give(order)
    told(options, order, `${key} ${orderText(order, deps.clock.now())}`)
  }

  function told(options: OrderOptions, order: Control | null, text: string): void {
    if (options.json === true) printJson({ order })
    else print(oneLine(text))
  }

  async function open<T>(run: (opened: Opened) => Promise<T>): Promise<T> {
    return context.withCluster(async (cluster, config) => {
      const reader = cluster.kafka.reader()
      try {
        const store = new ControlStore(cluster.kafka, topicNames(config).control, deps.clock)
        return await run({ cluster, config, reader, store, standing: await readLines(cluster.kafka, reader, config) })
      } finally {
        await reader.close()
      }
    })
  }

  return lines
}

function standingOnes(key: string, standing: readonly StandingLine[]): readonly StandingLine[] {
  const found = standing.filter(({ state }) => state.line === key)
  if (found.length > 0) return found
  throw new HooktideError('not-found', `line ${key} does not stand: nothing of it waits behind anything`, {
    remedy: '`hooktide lines list` shows those that do.',
  })
}

/** What a blocked or stopped line stands behind; null: it goes on. */
function standingHead(key: string, standing: readonly StandingLine[]): string | null {
  return standingOnes(key, standing).find(({ state }) => state.state !== 'draining')?.state.head ?? null
}

function cancelKept(before: Control | null): Record<string, string | number | boolean> {
  if (before?.order === 'cancel') {
    const { to = 'cancelled' } = before.args ?? {}
    return { cancelledMs: before.atMs, to, cancelReason: before.reason ?? `by ${before.by}` }
  }
  const { cancelledMs, to, cancelReason } = before?.args ?? {}
  return cancelledMs === undefined ? {} : { cancelledMs, to: to ?? 'cancelled', cancelReason: cancelReason ?? '' }
}

const codes =
  '\nEvery instance obeys within a second, and after a restart.\nExit codes: 0 done, 1 it failed or was not found, 2 wrong usage'
const examples = {
  all: `
Examples:
  hooktide lines list --state stopped
  hooktide lines show --subscription billing --key order-7
  hooktide lines release billing k order-7 --reason 'its first event is obsolete'
  hooktide lines skip billing k order-7${codes}`,
  list: `
Examples:
  hooktide lines list
  hooktide lines list --subscription billing --state blocked --json${codes}`,
  show: `
Examples:
  hooktide lines show billing k order-7
  hooktide lines show --subscription billing --key order-7 --limit 100 --json${codes}`,
  release: `
Examples:
  hooktide lines release billing k order-7
  hooktide lines release --subscription billing --key order-7 --reason 'agreed with the customer'
A stopped line stands again when another of its deliveries dies.${codes}`,
  skip: `
Examples:
  hooktide lines skip billing k order-7
  hooktide lines skip --subscription billing --key order-7 --dead --reason 'needs a repair by hand'${codes}`,
  cancel: `
Examples:
  hooktide lines cancel billing k order-7 --yes
  hooktide lines cancel --subscription billing --key order-7 --dead --yes --reason 'customer left'
Holds for events from before the order; it is obeyed as each of them comes up.${codes}`,
}
