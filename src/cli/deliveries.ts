import { Command } from 'commander'
import type { StoryJson } from '../operations/story-json.ts'
import type { CommandContext } from './context.ts'
import { type OrderOptions, orderText, withOrderOptions } from './order-options.ts'
import { ago, oneLine, time } from './text.ts'

/** `hooktide deliveries …`: one delivery's story, and ending it. */
export function deliveriesCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const deliveries = new Command('deliveries')
    .description('One delivery: what became of it, and cancelling it')
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

const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong usage'
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
  cancel: `
Examples:
  hooktide deliveries cancel msg_Q1… --subscription billing
  hooktide deliveries cancel msg_Q1… --dead --reason 'repair by hand'
An attempt that is open is not cut off; there is none after it. To take it back:
  \`hooktide control clear delivery:msg_Q1…\`.${codes}`,
}
