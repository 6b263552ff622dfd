import { Command } from 'commander'
import type { Config } from '../config.ts'
import type { Control } from '../core/control.ts'
import { encodeOrigin } from '../core/delivery.ts'
import { HooktideError } from '../core/error.ts'
import type { Cluster } from '../operations/cluster.ts'
import { ControlStore } from '../operations/control-store.ts'
import { readStory, type Story } from '../operations/delivery-story.ts'
import { topicNames } from '../operations/names.ts'
import { SubscriptionStore } from '../operations/subscription-store.ts'
import type { CommandContext } from './context.ts'
import { type OrderOptions, orderOf, orderText, withOrderOptions } from './order-options.ts'
import { createProgress } from './progress.ts'
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
      await context.withCluster(async (cluster, config) => {
        const story = await find(cluster, config, id, options.subscription)
        const order = await storeOf(cluster, config).order({ kind: 'delivery', target: id })
        if (options.json === true) printJson(storyJson(id, story, order))
        else print(storyText(id, story, order, deps.clock.now()))
      })
    })

  withOrderOptions(deliveries.command('cancel'))
    .description('a delivery is not attempted any more; a line that waits for it goes on')
    .argument('<id>', 'delivery id')
    .option('--subscription <id>', 'its subscription: looks for it in one lane only')
    .option('--dead', 'send it to the dead letters instead')
    .option('--unseen', 'do not look for it first')
    .addHelpText('after', examples.cancel)
    .action(async (id: string, options: OrderOptions & { subscription?: string; dead?: boolean; unseen?: boolean }) => {
      await context.withCluster(async (cluster, config) => {
        if (options.unseen !== true) {
          const { state } = await find(cluster, config, id, options.subscription)
          if (state === 'delivered' || state === 'cancelled' || state === 'dead') {
            throw new HooktideError('check.failed', `${id} is ${state} already: there is nothing to cancel`, {
              remedy: 'If it was redriven this moment, say --unseen.',
            })
          }
        }
        const args = options.dead === true ? { args: { to: 'dead' } } : {}
        const order = orderOf(context, { kind: 'delivery', target: id, order: 'cancel', ...args }, options)
        await storeOf(cluster, config).give(order)
        if (options.json === true) printJson({ order })
        else print(oneLine(`${id} ${orderText(order, deps.clock.now())}; obeyed when it would be attempted next`))
      })
    })

  async function find(
    { kafka }: Cluster,
    config: Config,
    id: string,
    subscription: string | undefined,
  ): Promise<Story> {
    const reader = kafka.reader()
    const progress = createProgress(deps.stderr, deps.clock)
    try {
      const story = await readStory(kafka, reader, config, { id, subscription, spread: await spread() }, progress)
      if (story !== null) return story
    } finally {
      progress.end()
      await reader.close()
    }
    const where = subscription === undefined ? '' : ` of ${subscription}`
    throw new HooktideError('not-found', `there is no delivery ${id.slice(0, 100)}${where} in the topics`, {
      remedy:
        'Retention may have taken it. The id is the webhook-id header; for subscriptions since removed leave out --subscription.',
    })

    /** A spread subscription's deliveries stand in several lanes. */
    async function spread(): Promise<boolean> {
      if (subscription === undefined) return false
      const table = await new SubscriptionStore(kafka, topicNames(config).subscriptions, deps.clock).read()
      const entry = table.get(subscription)
      return entry?.ok === true && (entry.value.spread ?? 1) > 1
    }
  }

  const storeOf = ({ kafka }: Cluster, config: Config) =>
    new ControlStore(kafka, topicNames(config).control, deps.clock)
  return deliveries
}

/** Stable shape of a story in JSON. */
function storyJson(id: string, { delivery, attempts, places, state, place, scanned }: Story, order: Control | null) {
  const known = delivery ?? null
  const last = attempts.at(-1)
  return {
    deliveryId: id,
    subscriptionId: known?.subscriptionId ?? last?.subscriptionId ?? null,
    tenant: known?.tenant ?? last?.tenant ?? null,
    eventId: known?.eventId ?? last?.eventId ?? null,
    eventType: known?.eventType ?? last?.eventType ?? null,
    orderingKey: known?.orderingKey ?? null,
    eventTimeMs: known?.eventTimeMs ?? null,
    origin: known === null ? (last?.origin ?? null) : encodeOrigin(known.origin),
    state,
    place,
    order,
    attempts,
    places,
    scanned,
  }
}

function storyText(id: string, story: Story, order: Control | null, nowMs: number): string {
  const { subscriptionId, eventType, eventId, orderingKey, state, place, eventTimeMs } = storyJson(id, story, order)
  const where =
    place === null
      ? ''
      : `, ${place.topic}/${place.partition} at ${place.offset}${place.line === null ? '' : `, line ${place.line}`}`
  const due =
    place?.dueMs == null
      ? ''
      : `, due ${time(place.dueMs)}${place.dueMs > nowMs ? ` (in ${ago(place.dueMs - nowMs)})` : ''}`
  const lines = [
    `delivery      ${id}`,
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
