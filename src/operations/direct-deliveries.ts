import { HooktideError } from '../core/error.ts'
import { isFinal } from '../core/state-view.ts'
import type { StateStore } from '../ports.ts'
import type { Caller, DeadOperations, DeliveryOperations } from './contract.ts'
import { readStory, type Story } from './delivery-story.ts'
import { orderOf } from './give-order.ts'
import type { OperationParts } from './parts.ts'
import { sendAgain } from './send-again.ts'
import { storyJson } from './story-json.ts'

/** Deliveries: their story from the log, everything else from the delivery state where this process has one. */
export function directDeliveries(parts: OperationParts, caller: Caller, dead: DeadOperations): DeliveryOperations {
  const { kafka, config, clock, control, progress } = parts
  const tenant = caller.tenant ?? undefined

  async function find(id: string, subscription: string | undefined): Promise<Story> {
    const reader = kafka.reader()
    try {
      const query = { id, subscription, spread: await spread(subscription) }
      const story = await readStory(kafka, reader, config, query, progress)
      const owner = story?.delivery?.tenant ?? story?.attempts.at(-1)?.tenant
      if (story !== null && (caller.tenant === null || owner === caller.tenant)) return story
    } finally {
      progress.end()
      await reader.close()
    }
    const where = subscription === undefined ? '' : ` of ${subscription}`
    throw new HooktideError('not-found', `there is no delivery ${id.slice(0, 100)}${where} in the topics`, {
      remedy:
        'Retention may have taken it. The id is the webhook-id header; for subscriptions since removed leave out --subscription.',
    })
  }

  /** A spread subscription's deliveries stand in several lanes. */
  async function spread(subscription: string | undefined): Promise<boolean> {
    if (subscription === undefined) return false
    const entry = (await parts.subscriptions.read()).get(subscription)
    return entry?.ok === true && (entry.value.spread ?? 1) > 1
  }

  /** Its state, as cheaply as this process can tell. */
  async function stateOf(id: string, subscription: string | undefined): Promise<string> {
    const known = (await parts.state?.delivery(id, tenant)) ?? null
    return known === null ? (await find(id, subscription)).state : known.status
  }

  function state(): StateStore {
    if (parts.state !== null) return parts.state
    throw new HooktideError('state.unavailable', 'there is no delivery state here to search', {
      remedy: 'Ask the API of a service that keeps one (docs/state.md), with --api-url.',
    })
  }

  async function show(id: string) {
    const found = await state().delivery(id, tenant)
    if (found !== null) return found
    throw new HooktideError('not-found', `there is no delivery ${id.slice(0, 100)}`, {
      remedy: 'The id is the webhook-id header. The state trails the log by a moment, and follows its retention.',
    })
  }

  return {
    async story(id, subscription) {
      const story = await find(id, subscription)
      return storyJson(id, story, await control.order({ kind: 'delivery', target: id }))
    },

    async cancel(id, options) {
      // A tenant's caller can only cancel what is known to be its own.
      if (options.unseen !== true || caller.tenant !== null) {
        const now = await stateOf(id, options.subscription)
        if (options.unseen !== true && (now === 'delivered' || now === 'cancelled' || now === 'dead')) {
          throw new HooktideError('check.failed', `${id} is ${now} already: there is nothing to cancel`, {
            remedy: 'If it was redriven this moment, say --unseen.',
          })
        }
      }
      const args = options.dead === true ? { args: { to: 'dead' } } : {}
      const order = orderOf(clock.now(), caller, { kind: 'delivery', target: id, order: 'cancel', ...args }, options)
      await control.give(order)
      return { order }
    },

    search: (query, page) => state().deliveries({ ...query, ...(tenant === undefined ? {} : { tenant }) }, page),
    show,

    async retry(id) {
      const delivery = await show(id)
      if (!isFinal(delivery.status)) {
        throw new HooktideError('conflict', `${id} is ${delivery.status}: it is attempted anyway`, {
          remedy: 'Wait for the attempt; only what is delivered, dead or cancelled can be sent again.',
        })
      }
      if (delivery.status === 'dead')
        return dead.redrive({ ids: [id], subscription: delivery.subscriptionId, dryRun: false })
      const { delivery: sent } = await find(id, delivery.subscriptionId)
      if (sent !== null) return sendAgain(parts, sent)
      throw new HooktideError('conflict', `of ${id} only its attempts are left in the log, not its body`, {
        remedy: 'Produce the event again.',
      })
    },
  }
}
