/**
 * Kafka's default partition of a key: murmur2 as in the Java client (org.apache.kafka.common.utils.Utils.murmur2), sign
 * bit cleared, modulo the partition count. Everything of a subscription stands in one partition because of this, so it
 * can never change within a generation of topics.
 */
export function partitionOf(key: string | Buffer, count: number): number {
  return (murmur2(typeof key === 'string' ? Buffer.from(key) : key) & 0x7fffffff) % count
}

const multiplier = 0x5bd1e995

export function murmur2(data: Buffer): number {
  const { length } = data
  let h = 0x9747b28c ^ length
  const end = length - (length % 4)
  for (let i = 0; i < end; i += 4) {
    let k = Math.imul(data.readInt32LE(i), multiplier)
    k = Math.imul(k ^ (k >>> 24), multiplier)
    h = Math.imul(h, multiplier) ^ k
  }
  if (end < length) {
    for (let i = length - 1; i >= end; i--) h ^= (data[i] as number) << (8 * (i - end))
    h = Math.imul(h, multiplier)
  }
  h = Math.imul(h ^ (h >>> 13), multiplier)
  return h ^ (h >>> 15)
}

/**
 * The lane of a delivery: its subscription's, or one of `spread` lanes from there on, by delivery. Neighbours of one
 * subscription so rarely share all lanes with those of another (shuffle sharding).
 */
export function laneOf(
  subscription: { readonly id: string; readonly spread?: number; readonly ordering: string },
  deliveryId: string,
  lanes: number,
): number {
  const first = partitionOf(subscription.id, lanes)
  const spread = subscription.ordering === 'none' ? Math.min(subscription.spread ?? 1, lanes) : 1
  return spread <= 1 ? first : (first + partitionOf(deliveryId, spread)) % lanes
}

/** All lanes in which a subscription may have deliveries, of now or of when it was spread otherwise. */
export function lanesOf(subscription: { readonly id: string; readonly spread?: number }, lanes: number): number[] {
  if ((subscription.spread ?? 1) > 1) return Array.from({ length: lanes }, (_, lane) => lane)
  return [partitionOf(subscription.id, lanes)]
}
