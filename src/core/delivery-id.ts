import { hash } from 'node:crypto'

/**
 * What makes two records the same event. `cloudevent`: source and id, as CloudEvents say; `given`: the producer's id,
 * unique within its topic; `position`: no id was given, so the record's place is its identity.
 */
export type EventIdentity =
  | { readonly t: 'cloudevent'; readonly source: string; readonly id: string }
  | { readonly t: 'given'; readonly topic: string; readonly id: string }
  | { readonly t: 'position'; readonly topic: string; readonly partition: number; readonly offset: number }

/**
 * `webhook-id` of an event for one subscription: equal for every attempt, replay and doubled produce. 256 bits, so
 * nobody who chooses event ids can make two deliveries share one. No `.`, which the signature uses as a separator.
 */
export function deliveryId(identity: EventIdentity, subscriptionId: string): string {
  const parts = ['hooktide-delivery-1', ...identityParts(identity), subscriptionId]
  let bytes = 0
  for (const part of parts) bytes += 4 + Buffer.byteLength(part)
  const framed = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const part of parts) {
    const length = framed.write(part, at + 4)
    // Length first: without it ("ab", "c") and ("a", "bc") would be one event.
    framed.writeUInt32BE(length, at)
    at += 4 + length
  }
  // One call instead of one per part: this runs once per delivery.
  return `msg_${hash('sha256', framed, 'base64url')}`
}

function identityParts(identity: EventIdentity): readonly string[] {
  switch (identity.t) {
    case 'cloudevent':
      return ['cloudevent', identity.source, identity.id]
    case 'given':
      return ['given', identity.topic, identity.id]
    case 'position':
      return ['position', identity.topic, String(identity.partition), String(identity.offset)]
    default:
      return identity satisfies never
  }
}
