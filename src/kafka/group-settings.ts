/** Times and sizes of a group consumer. */
export interface GroupSettings {
  /** The coordinator forgets a member it has not heard of for this long: also the longest standstill after a crash. */
  readonly sessionMs: number
  /** Also how late a member can hear of a rebalance, while those who heard at once stand still and wait for it. */
  readonly heartbeatMs: number
  /** How long a broker may hold a fetch that finds nothing; also the longest a resume or seek waits for its turn. */
  readonly maxWaitMs: number
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
  /** How old metadata may get before added partitions are looked for. */
  readonly metadataMaxAgeMs: number
}

const defaults: GroupSettings = {
  sessionMs: 15_000,
  heartbeatMs: 500,
  maxWaitMs: 100,
  // Decoded and taken in one step, during which nothing else happens: some 20 ms of small records.
  maxBytes: 1024 * 1024,
  // Holds the largest batch our own producers write, so that no partition has to wait until it comes first in a fetch.
  maxBytesPerPartition: 1024 * 1024,
  metadataMaxAgeMs: 30_000,
}

export function groupSettings(given: Partial<GroupSettings> | undefined): GroupSettings {
  return { ...defaults, ...given }
}
