/** Physical names of the topics a lane owns a partition of, and of those it writes to. */
export interface LaneTopics {
  readonly deliveries: string
  /** Shortest delay first, as in the ladder. */
  readonly tiers: readonly string[]
  readonly parked: string
  readonly laneState: string
  readonly dead: string
  readonly attempts: string
  readonly rejected: string
}

/** What a lane reads through the consumer group: index 0 is `deliveries`, index i + 1 tier i. */
export function sourceTopics(topics: LaneTopics): string[] {
  return [topics.deliveries, ...topics.tiers]
}
