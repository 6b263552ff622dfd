import { HooktideError } from '../core/error.ts'
import type { Caller, OrderOperations, TierOperations } from './contract.ts'
import { inForce, type StandingOrder } from './control-store.ts'
import { orderOf } from './give-order.ts'
import type { OperationParts } from './parts.ts'
import { readTiers, tierName } from './tier-read.ts'

/** All operators' orders. No tenant's caller gets here: orders name others' lines and subscriptions. */
export function directOrders({ control, clock }: OperationParts, caller: Caller): OrderOperations {
  return {
    async list({ kind, all = false }) {
      operatorsOnly(caller)
      const nowMs = clock.now()
      const orders = [...(await control.read()).values()]
        .filter(({ key }) => kind === undefined || key.startsWith(`${kind}:`))
        .map((standing) => ({ ...standing, inForce: standing.order !== null && holds(standing, nowMs) }))
        .filter((standing) => all || holds(standing, nowMs))
        .sort((a, b) => (b.order?.atMs ?? 0) - (a.order?.atMs ?? 0))
      return { orders }
    },

    async clear(targets, { ended }) {
      operatorsOnly(caller)
      const orders = await control.read()
      const unknown = targets.filter((target) => !orders.has(target))
      if (unknown.length > 0) {
        throw new HooktideError('not-found', `there is no order for ${unknown.join(', ')}; nothing was cleared`, {
          remedy: '`hooktide control list --all` shows those there are.',
        })
      }
      const nowMs = clock.now()
      // A line's release stays: a lane that is down now must still find it.
      const over = [...orders.values()].filter(
        ({ order }) => order !== null && order.kind !== 'job' && order.kind !== 'line' && !inForce(order, nowMs),
      )
      const cleared = [...new Set([...targets, ...(ended ? over.map(({ key }) => key) : [])])]
      await control.clear(cleared)
      return { cleared }
    },
  }
}

/** What can't be read is shown: it may be an order that newer instances obey. */
function holds({ order }: StandingOrder, nowMs: number): boolean {
  return order === null || inForce(order, nowMs)
}

/** Tiers hold everybody's deliveries, so they are operators' business. */
export function directTiers(parts: OperationParts, caller: Caller): TierOperations {
  return {
    async list() {
      operatorsOnly(caller)
      return { tiers: await readTiers(parts) }
    },
    async order(name, what, input) {
      operatorsOnly(caller)
      const target = tierName(parts.config, name)
      const order = orderOf(parts.clock.now(), caller, { kind: 'tier', target, ...what }, input)
      await parts.control.give(order)
      return { order }
    },
  }
}

export function operatorsOnly({ tenant }: Caller): void {
  if (tenant === null) return
  throw new HooktideError('forbidden', 'this is for operators: the caller is bound to a tenant', {
    remedy: 'Use a token that is not bound to a tenant.',
  })
}
