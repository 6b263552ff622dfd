export interface ExecutorLimits {
  /** Open POSTs of the process. */
  readonly maxInFlight: number
  /** Bytes of the bodies of open POSTs. */
  readonly maxInFlightBytes: number
  /** Most of the open POSTs that retries, lines, replays and redrives may hold while live first attempts wait, 0..1. */
  readonly retryShare: number
  readonly maxPerSubscription: number
  readonly maxPerOrigin: number
  /** POSTs a second to one origin, over all subscriptions of this process; null: unbounded. */
  readonly maxPerOriginPerSecond: number | null
  /** False while our ownership of the lanes is not confirmed: nothing starts then. */
  readonly leased: () => boolean
}
