import { createHash } from 'node:crypto'

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
  const hash = createHash('sha256')
  for (const part of ['hooktide-delivery-1', ...identityParts(identity), subscriptionId]) {
    const bytes = Buffer.from(part)
    // Length first: without it ("ab", "c") and ("a", "bc") would be one event.
    const length = Buffer.allocUnsafe(4)
    length.writeUInt32BE(bytes.length)
    hash.update(length).update(bytes)
  }
  return `msg_${hash.digest('base64url')}`
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
