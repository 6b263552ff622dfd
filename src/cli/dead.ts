import { randomBytes } from 'node:crypto'
import { Command, Option } from 'commander'
import { HooktideError } from '../core/error.ts'
import {
  type Cursor,
  cursorText,
  type DeadFilter,
  type DeadLetter,
  parseCursor,
  readDead,
} from '../operations/dead-read.ts'
import { redrive } from '../operations/dead-redrive.ts'
import { topicNames } from '../operations/names.ts'
import { partitionsOf } from '../operations/read-topic.ts'
import { SubscriptionStore } from '../operations/subscription-store.ts'
import type { CommandContext } from './context.ts'
import { deadJson, deadTable, deadText } from './dead-view.ts'
import { exitCode } from './exit-code.ts'
import { countArgument, rateArgument, sinceArgument } from './options.ts'
import { createProgress } from './progress.ts'
import { plural } from './text.ts'

interface FilterOptions {
  readonly subscription?: string
  readonly reason?: string
  readonly since?: number
  readonly cursor?: string
  readonly json?: boolean
}

/** `hooktide dead …`: what could not be delivered, and sending it again. */
export function deadCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const dead = new Command('dead')
    .description('Dead letters: list, look at, send again')
    .addHelpText('after', examples.all)
  const withFilters = (command: Command) =>
    command
      .option('--subscription <id>', 'only of this subscription')
      .addOption(
        new Option('--reason <reason>', 'only dead for this reason').choices([
          'exhausted',
          'rejected',
          'gone',
          'blocked',
          'unreadable',
          'operator',
        ]),
      )
      .option(
        '--since <when>',
        'only dead since: how long ago, or a date',
        sinceArgument(() => deps.clock.now()),
      )
      .option('--cursor <cursor>', 'go on where the last call stopped: partition/offset')
      .option('--json', 'print JSON')
  const cursorOf = ({ cursor }: FilterOptions) => (cursor === undefined ? null : parseCursor(cursor))

  withFilters(dead.command('list'))
    .description('list dead letters, oldest of each lane first')
    .option('--limit <n>', 'at most so many', countArgument(1, 100_000), 50)
    .addHelpText('after', examples.list)
    .action(async (options: FilterOptions & { limit: number }) => {
      const letters: DeadLetter[] = []
      let next: Cursor | null = null
      await reading(options, cursorOf(options), (letter) => {
        if (letters.length === options.limit) {
          next = { partition: letter.partition, offset: letter.record.offset }
          return false
        }
        letters.push(letter)
        return true
      })
      const cursor = next === null ? null : cursorText(next)
      if (options.json === true) return printJson({ dead: letters.map(deadJson), cursor })
      print(letters.length === 0 ? 'No dead letters.' : deadTable(letters))
      if (cursor !== null) print(`There are more: --cursor ${cursor}`)
    })

  dead
    .command('show')
    .description('show one dead letter')
    .argument('<delivery>', 'delivery id, or its place in dead: partition/offset')
    .option('--subscription <id>', 'its subscription: looks in one lane only')
    .option('--body', 'print the body, byte for byte, and nothing else')
    .option('--json', 'print JSON; the body as base64')
    .addHelpText('after', examples.show)
    .action(async (id: string, options: { subscription?: string; body?: boolean; json?: boolean }) => {
      const place = /^\d+\/\d+$/.test(id) ? parseCursor(id) : null
      const filter = place === null ? { subscription: options.subscription, ids: new Set([id]) } : {}
      let last: DeadLetter | null = null
      let times = 0
      await reading(filter, place, (letter) => {
        if (place !== null && (letter.partition !== place.partition || letter.record.offset !== place.offset))
          return false
        last = letter
        times++
        return place === null
      })
      const letter = last as DeadLetter | null
      if (letter === null) {
        throw new HooktideError('not-found', `there is no dead letter ${id.slice(0, 100)}`, {
          remedy: '`hooktide dead list` shows those there are.',
        })
      }
      const body = letter.record.value ?? Buffer.alloc(0)
      if (options.body === true) deps.stdout.write(body)
      else if (options.json === true) printJson({ ...deadJson(letter), times, body: body.toString('base64') })
      else print(times > 1 ? `${deadText(letter)}\ndied ${times} times; this is the last` : deadText(letter))
    })

  withFilters(dead.command('redrive'))
    .description('send dead letters again: same delivery ids, attempts counted anew')
    .argument('[delivery...]', 'delivery ids; none: all that the filters leave')
    .option('--all', 'send everything there is, when no filter is given')
    .option('--rate <perSecond>', 'at most so many per second', rateArgument)
    .option('--dry-run', 'only say how many')
    .addHelpText('after', examples.redrive)
    .action(async (ids: string[], options: FilterOptions & { all?: boolean; rate?: number; dryRun?: boolean }) => {
      const { subscription, reason, since } = options
      if (ids.length === 0 && (subscription ?? reason ?? since) === undefined && options.all !== true) {
        throw new HooktideError('usage', 'this would send every dead letter there is', {
          remedy: 'Give delivery ids or a filter, or say --all.',
        })
      }
      const job = `${deps.clock.now().toString(36)}-${randomBytes(4).toString('hex')}`
      await context.withCluster(async ({ kafka }, config) => {
        const names = topicNames(config)
        const known = await new SubscriptionStore(kafka, names.subscriptions, deps.clock).read()
        const filter: DeadFilter = { subscription, reason, since, ids: ids.length === 0 ? undefined : new Set(ids) }
        const progress = createProgress(deps.stderr, deps.clock)
        const reader = kafka.reader()
        const producer = kafka.producer()
        try {
          const letters = readDead(kafka, reader, names.dead, filter, cursorOf(options), progress)
          const result = await redrive(letters, producer, {
            job,
            deliveriesTopic: names.deliveries,
            lanes: await partitionsOf(kafka, names.deliveries),
            perSecond: options.rate ?? null,
            dryRun: options.dryRun === true,
            clock: deps.clock,
            signal: deps.signal,
            progress,
            isKnown: (id) => known.has(id),
          })
          progress.end()
          const { redriven, repeated, unreadable, orphaned } = result
          const interrupted = deps.signal.aborted
          const cursor = interrupted && result.next !== null ? cursorText(result.next) : null
          if (options.json === true) {
            printJson({
              job,
              dryRun: options.dryRun === true,
              redriven,
              repeated,
              unreadable,
              orphaned,
              interrupted,
              cursor,
            })
          } else {
            const verb = options.dryRun === true ? 'would be redriven' : `redriven as job ${job}`
            print(`${plural(redriven, 'dead letter')} ${verb}`)
            if (repeated > 0) print(`${repeated} more are the same deliveries, dead again: sent once`)
            if (orphaned > 0) print(`${orphaned} left out: their subscription is gone`)
            if (unreadable > 0) print(`${unreadable} left out: their headers can not be read`)
            if (cursor !== null) print(`Interrupted. Go on with --cursor ${cursor}`)
          }
          if (interrupted || (ids.length > 0 && redriven < new Set(ids).size)) deps.setExitCode(exitCode.failed)
        } finally {
          progress.end()
          await Promise.all([reader.close(), producer.close()])
        }
      })
    })

  /** Until `take` says no more. */
  async function reading(
    filter: DeadFilter,
    cursor: Cursor | null,
    take: (letter: DeadLetter) => boolean,
  ): Promise<void> {
    await context.withCluster(async ({ kafka }, config) => {
      const reader = kafka.reader()
      const progress = createProgress(deps.stderr, deps.clock)
      try {
        for await (const letter of readDead(kafka, reader, topicNames(config).dead, filter, cursor, progress)) {
          if (!take(letter)) break
        }
      } finally {
        progress.end()
        await reader.close()
      }
    })
  }

  return dead
}

const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong usage'
const examples = {
  all: `
Examples:
  hooktide dead list --since 2h
  hooktide dead show msg_…
  hooktide dead redrive --subscription billing --dry-run${codes}`,
  list: `
Examples:
  hooktide dead list --subscription billing
  hooktide dead list --reason exhausted --since 1d --limit 500 --json${codes}`,
  show: `
Examples:
  hooktide dead show msg_Q1…  --subscription billing
  hooktide dead show 3/120 --body > body.json${codes}`,
  redrive: `
Examples:
  hooktide dead redrive --subscription billing --since 1d --dry-run
  hooktide dead redrive --subscription billing --since 1d --rate 50
  hooktide dead redrive msg_Q1… msg_x7…
A second run sends them again, under the same ids: dead letters stay until retention takes them.
Exit codes: 0 done; 1 it failed, was interrupted, or an id was not found; 2 wrong usage`,
}
