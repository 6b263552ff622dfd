import type { EndpointRate } from '../core/endpoint-settings.ts'
import { TokenBucket } from '../core/token-bucket.ts'
import type { Clock } from '../ports.ts'
import type { WorkOwner } from './work.ts'

export interface Paced {
  readonly origin: string
  readonly rate: EndpointRate | null
  /** Over how many lanes its deliveries are spread: each lane has its part of the rate, wherever it is owned. */
  readonly lanes: number
}

type Buckets = Map<string, { readonly rate: EndpointRate; readonly bucket: TokenBucket }>

interface OriginPace {
  readonly bucket: TokenBucket
  /** Subscriptions that were turned away, longest waiting first. */
  readonly waiting: Set<string>
  timer: boolean
}

const sweepAbove = 10_000

/**
 * POSTs a second, of subscriptions and of origins. Who is turned away is told once, by one timer, when it can go on: no
 * work waits in a slot for its rate and nothing is asked again and again.
 */
export class Paces {
  readonly #clock: Clock
  readonly #perOriginPerSecond: number | null
  readonly #wake: (subscriptionId: string) => void
  readonly #buckets: Buckets = new Map()
  readonly #perLane = new WeakMap<WorkOwner, Buckets>()
  readonly #timers = new Map<string, () => void>()
  readonly #origins = new Map<string, OriginPace>()

  constructor(clock: Clock, perOriginPerSecond: number | null, wake: (subscriptionId: string) => void) {
    this.#clock = clock
    this.#perOriginPerSecond = perOriginPerSecond
    this.#wake = wake
  }

  /** May one of the subscription's works, of that lane, start now? False: `wake` is called when it is worth asking again. */
  allows(subscriptionId: string, lane: WorkOwner, paced: Paced): boolean {
    const nowMs = this.#clock.mono()
    if (paced.rate !== null) {
      const waitMs = this.#bucket(subscriptionId, lane, paced, paced.rate).waitMs(nowMs)
      if (waitMs > 0) {
        this.#arm(subscriptionId, waitMs)
        return false
      }
    }
    if (this.#perOriginPerSecond === null) return true
    const origin = this.#origin(paced.origin, this.#perOriginPerSecond)
    const waitMs = origin.bucket.waitMs(nowMs)
    if (waitMs === 0) return true
    origin.waiting.add(subscriptionId)
    this.#armOrigin(origin, waitMs)
    return false
  }

  /** One started. */
  take(subscriptionId: string, lane: WorkOwner, paced: Paced): void {
    if (paced.rate !== null) this.#bucket(subscriptionId, lane, paced, paced.rate).take()
    if (this.#perOriginPerSecond !== null) this.#origin(paced.origin, this.#perOriginPerSecond).bucket.take()
  }

  /** Subscriptions that were turned away and not asked again since. */
  waiting(): ReadonlySet<string> {
    const all = new Set(this.#timers.keys())
    for (const { waiting } of this.#origins.values()) for (const id of waiting) all.add(id)
    return all
  }

  #bucket(subscriptionId: string, lane: WorkOwner, { lanes }: Paced, rate: EndpointRate): TokenBucket {
    const buckets = lanes === 1 ? this.#buckets : this.#bucketsOf(lane)
    const known = buckets.get(subscriptionId)
    if (known !== undefined && known.rate.perSecond === rate.perSecond && known.rate.burst === rate.burst)
      return known.bucket
    const nowMs = this.#clock.mono()
    if (buckets.size >= sweepAbove)
      for (const [other, { bucket }] of buckets) if (bucket.full(nowMs)) buckets.delete(other)
    const burst = rate.burst === undefined ? undefined : rate.burst / lanes
    const bucket = new TokenBucket(rate.perSecond / lanes, burst, nowMs)
    buckets.set(subscriptionId, { rate, bucket })
    return bucket
  }

  #bucketsOf(lane: WorkOwner): Buckets {
    let buckets = this.#perLane.get(lane)
    if (buckets === undefined) {
      buckets = new Map()
      this.#perLane.set(lane, buckets)
    }
    return buckets
  }

  #origin(name: string, perSecond: number): OriginPace {
    let origin = this.#origins.get(name)
    if (origin === undefined) {
      const nowMs = this.#clock.mono()
      if (this.#origins.size >= sweepAbove)
        for (const [other, { bucket, waiting }] of this.#origins)
          if (waiting.size === 0 && bucket.full(nowMs)) this.#origins.delete(other)
      origin = { bucket: new TokenBucket(perSecond, undefined, nowMs), waiting: new Set(), timer: false }
      this.#origins.set(name, origin)
    }
    return origin
  }

  #arm(subscriptionId: string, waitMs: number): void {
    if (this.#timers.has(subscriptionId)) return
    const cancel = this.#clock.after(Math.ceil(waitMs), () => {
      this.#timers.delete(subscriptionId)
      this.#wake(subscriptionId)
    })
    this.#timers.set(subscriptionId, cancel)
  }

  #armOrigin(origin: OriginPace, waitMs: number): void {
    if (origin.timer) return
    origin.timer = true
    this.#clock.after(Math.ceil(waitMs), () => {
      origin.timer = false
      // As many as there are tokens, in turn; who still has something to send stands behind the others again.
      for (let turns = origin.waiting.size; turns > 0; turns--) {
        const leftMs = origin.bucket.waitMs(this.#clock.mono())
        if (leftMs > 0) return this.#armOrigin(origin, leftMs)
        const [next] = origin.waiting as Set<string> & Iterable<string>
        origin.waiting.delete(next as string)
        this.#wake(next as string)
      }
    })
  }
}
