import type { Claim } from '../../src/core/claim.ts'
import type { Delivery } from '../../src/core/delivery.ts'
import { againOf } from './rounds.ts'

export function eventName(e: {
  subscription: string
  key: string | null
  sequence: number
  again?: number | undefined
}): string {
  return `${e.subscription}/${e.key ?? '-'}#${e.sequence}${e.again === undefined ? '' : `~${e.again}`}`
}

export function deliveryEvent({ id, subscriptionId, body, claim }: NamedDelivery): string {
  return eventName({
    subscription: subscriptionId,
    ...(claim === undefined ? named(body) : claimed(claim)),
    again: againOf(id),
  })
}

type NamedDelivery = Pick<Delivery, 'id' | 'subscriptionId' | 'body' | 'claim'>

function named(body: Buffer): { key: string | null; sequence: number } {
  const { key, sequence } = JSON.parse(body.toString()) as { key: string | null; sequence: number }
  return { key, sequence }
}

/** Its body is elsewhere. */
function claimed({ key }: Claim): { key: string | null; sequence: number } {
  const [, name, sequence] = key.split('/')
  return { key: name === 'none' ? null : (name as string), sequence: Number(sequence) }
}

/** Where the body of such an event is kept: the key says which event it is. */
export function claimKeyOf(key: string | null, sequence: number): string {
  return `bodies/${key ?? 'none'}/${sequence}`
}

export function group<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const list = groups.get(key)
    if (list === undefined) groups.set(key, [item])
    else list.push(item)
  }
  return groups
}
