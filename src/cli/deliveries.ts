import { Command, Option } from 'commander'
import { type DeliveryQuery, type DeliveryStatus, type DeliveryView, deliveryStatuses } from '../core/state-view.ts'
import type { StoryJson } from '../operations/story-json.ts'
import type { CommandContext } from './context.ts'
import { exitCode } from './exit-code.ts'
import { countArgument, sinceArgument } from './options.ts'
import { type OrderOptions, orderText, withOrderOptions } from './order-options.ts'
import { ago, oneLine, table, time } from './text.ts'

interface ListOptions {
  readonly event?: string
  readonly subscription?: string
  readonly tenant?: string
  readonly status?: DeliveryStatus
  readonly type?: string
  readonly since?: number
  readonly until?: number
  readonly limit: number
  readonly cursor?: string
  readonly json?: boolean
}

/** `hooktide deliveries …`: one delivery's story, and ending it. */
export function deliveriesCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const since = sinceArgument(() => deps.clock.now())
  const deliveries = new Command('deliveries')
    .description('Deliveries: search, what became of one, sending again, cancelling')
    .addHelpText('after', examples.all)

  deliveries
    .command('show')
    .description('every attempt of a delivery, and where it is now')
    .argument('<id>', 'delivery id: the webhook-id that the receiver got')
    .option('--subscription <id>', 'its subscription: reads one lane instead of all')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.show)
    .action(async (id: string, options: { subscription?: string; json?: boolean }) => {
      const story = await context.withOperations((ops) => ops.deliveries.story(id, options.subscription))
      if (options.json === true) printJson(story)
      else print(storyText(story, deps.clock.now()))
    })

  deliveries
    .command('list')
    .description('search deliveries in the delivery state, newest first')
    .option('--event <id>', 'only of this event')
    .option('--subscription <id>', 'only of this subscription')
    .option('--tenant <tenant>', 'only of this tenant')
    .addOption(new Option('--status <status>', 'only in this status').choices(deliveryStatuses))
    .option('--type <type>', 'only of this event type')
    .option('--since <when>', 'only written since: how long ago, or a date', since)
    .option('--until <when>', 'only written before', since)
    .option('--limit <n>', 'at most so many', countArgument(1, 1000), 50)
    .option('--cursor <cursor>', 'go on behind the last call')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async (options: ListOptions) => {
      const { limit, cursor = null } = options
      const page = await context.withOperations((ops) => ops.deliveries.search(queryOf(options), { limit, cursor }))
      if (options.json === true) {
        printJson({ deliveries: page.items, cursor: page.nextCursor })
        return
      }
      print(page.items.length === 0 ? 'No deliveries.' : deliveriesTable(page.items))
      if (page.nextCursor !== null) print(`There are more: --cursor ${page.nextCursor}`)
    })

  deliveries
    .command('retry')
    .description('send a delivery that is final again, now, under its id')
    .argument('<id>', 'delivery id')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.retry)
    .action(async (id: string, options: { json?: boolean }) => {
      const report = await context.withOperations((ops) => ops.deliveries.retry(id))
      if (options.json === true) printJson(report)
      else print(oneLine(report.redriven === 1 ? `${id} is sent again` : `${id} was not found to be sent`))
      if (report.redriven !== 1) deps.setExitCode(exitCode.failed)
    })

  withOrderOptions(deliveries.command('cancel'))
    .description('a delivery is not attempted any more; a line that waits for it goes on')
    .argument('<id>', 'delivery id')
    .option('--subscription <id>', 'its subscription: looks for it in one lane only')
    .option('--dead', 'send it to the dead letters instead')
    .option('--unseen', 'do not look for it first')
    .addHelpText('after', examples.cancel)
    .action(async (id: string, options: OrderOptions & { subscription?: string; dead?: boolean; unseen?: boolean }) => {
      const { order } = await context.withOperations((ops) => ops.deliveries.cancel(id, options))
      if (options.json === true) printJson({ order })
      else print(oneLine(`${id} ${orderText(order, deps.clock.now())}; obeyed when it would be attempted next`))
    })

  return deliveries
}

function queryOf(options: ListOptions): DeliveryQuery {
  const query = {
    eventId: options.event,
    subscriptionId: options.subscription,
    tenant: options.tenant,
    status: options.status,
    type: options.type,
    fromMs: options.since,
    toMs: options.until,
  }
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined))
}

function deliveriesTable(found: readonly DeliveryView[]): string {
  const columns = [
    { title: 'WRITTEN' },
    { title: 'DELIVERY', max: 24 },
    { title: 'SUBSCRIPTION', max: 18 },
    { title: 'TYPE', max: 16 },
    { title: 'STATUS' },
    { title: 'TRIES', right: true },
    { title: 'ERROR', max: 14 },
  ]
  const rows = found.map(({ createdMs, id, subscriptionId, eventType, status, attempts, lastError }) => [
    ...[time(createdMs).slice(5), id, subscriptionId, eventType, status],
    ...[String(attempts), lastError ?? ''],
  ])
  return table(columns, rows)
}

function storyText(story: StoryJson, nowMs: number): string {
  const { subscriptionId, eventType, eventId, orderingKey, state, place, eventTimeMs, order } = story
  const where =
    place === null
      ? ''
      : `, ${place.topic}/${place.partition} at ${place.offset}${place.line === null ? '' : `, line ${place.line}`}`
  const due =
    place?.dueMs == null
      ? ''
      : `, due ${time(place.dueMs)}${place.dueMs > nowMs ? ` (in ${ago(place.dueMs - nowMs)})` : ''}`
  const lines = [
    `delivery      ${story.deliveryId}`,
    `state         ${state}${where}${due}`,
    `subscription  ${subscriptionId}`,
    `event         ${eventId}, ${eventType}${orderingKey === null ? '' : `, key ${orderingKey}`}`,
    `produced      ${eventTimeMs === null ? 'unknown' : time(eventTimeMs)}`,
  ]
  if (order !== null) lines.push(`order         ${orderText(order, nowMs)}`)
  for (const { attempt, startedAtMs, durationMs, status, error, settlement, dueMs } of story.attempts) {
    const what = status ?? error ?? settlement
    const next = settlement === 'scheduled' && dueMs !== null ? `${settlement}, due ${time(dueMs)}` : settlement
    lines.push(`${`attempt ${attempt}`.padEnd(14)}${time(startedAtMs)}  ${what}, ${durationMs}ms: ${next}`)
  }
  if (story.attempts.length === 0) lines.push('attempts      none')
  lines.push(`looked at     ${story.scanned} records`)
  return lines.map(oneLine).join('\n')
}

const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
const examples = {
  all: `
Examples:
  hooktide deliveries show msg_Q1… --subscription billing
  hooktide deliveries cancel msg_Q1… --reason 'sent by mistake'${codes}`,
  show: `
Examples:
  hooktide deliveries show msg_Q1…
  hooktide deliveries show msg_Q1… --subscription billing --json
It reads the topics of a lane from their starts, or of all lanes; progress goes to stderr.${codes}`,
  list: `
Examples:
  hooktide deliveries list --event order-17
  hooktide deliveries list --subscription billing --status dead --since 1d --json
It needs the delivery state (docs/state.md): of this machine, or with --api-url of the service.${codes}`,
  retry: `
Examples:
  hooktide deliveries retry msg_Q1…
  hooktide deliveries retry msg_Q1… --api-url https://hooktide.example.com --json
Delivered, dead or cancelled ones; what waits is attempted anyway. It needs the delivery state.${codes}`,
  cancel: `
Examples:
  hooktide deliveries cancel msg_Q1… --subscription billing
  hooktide deliveries cancel msg_Q1… --dead --reason 'repair by hand'
An attempt that is open is not cut off; there is none after it. To take it back:
  \`hooktide control clear delivery:msg_Q1…\`.${codes}`,
}
