import { deliveryHeader } from '../core/delivery.ts'
import { parseEvent } from '../core/event-format.ts'
import { type Job, jobStream } from '../core/job.ts'
import { patternMatches } from '../core/match-index.ts'
import { mostReached, type ReachedIds } from '../core/reached-ids.ts'
import type { InRecord } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import { wantsEvent } from '../core/wants-event.ts'
import { fanOut } from './fan-out.ts'
import { placeOf } from './job-log.ts'
import type { Footing, PartWork, PartYield } from './job-part.ts'
import type { JobReached } from './job-reached.ts'
import type { RouterDeps } from './router-deps.ts'

type ReplayDeps = Pick<RouterDeps, 'subscriptions' | 'topics' | 'lanes' | 'limits' | 'clock'>

/** Events matched again for one subscription, as it is now. */
export class ReplayWork implements PartWork {
  readonly #deps: ReplayDeps
  readonly #part: string
  readonly #reachedBy: JobReached
  #subscription: Subscription | null = null
  #reached: ReachedIds | null = null

  constructor(deps: ReplayDeps, part: string, reached: JobReached) {
    this.#deps = deps
    this.#reachedBy = reached
    this.#part = part
  }

  async footing(job: Job): Promise<Footing> {
    const { subscriptions, clock } = this.#deps
    await subscriptions.freshen()
    const found = subscriptions.get(job.subscriptionId ?? '')
    const mine = found !== undefined && (job.tenant === null || job.tenant === found.tenant)
    this.#subscription = mine ? found : null
    if (mine) {
      if (job.filter.onlyMissing !== true || this.#reached !== null) return { t: 'ready' }
      const reached = this.#reachedBy.of(job, found)
      if (reached.t === 'reading') return { t: 'wait' }
      if (reached.t === 'too-many') {
        return { t: 'stop', reason: `more than ${mostReached} deliveries were made: too many to tell what is missing` }
      }
      this.#reached = reached.ids
      return { t: 'ready' }
    }
    // A job that begins a subscription is written before it.
    if (job.untilLive && clock.now() < job.atMs + unbornMs) return { t: 'wait' }
    return { t: 'stop', reason: `there is no subscription ${job.subscriptionId}` }
  }

  deliveriesOf(job: Job, record: InRecord): PartYield {
    const { topics, lanes, limits, subscriptions } = this.#deps
    const event = parseEvent(record, placeOf(this.#part), limits)
    // The router has told of it, in `rejected`.
    if (!event.ok) return 'unreadable'
    const { type, fromMs, toMs } = job.filter
    const { timeMs } = event.value
    if ((fromMs !== undefined && timeMs < fromMs) || (toMs !== undefined && timeMs >= toMs)) return 'passed'
    if (type !== undefined && !patternMatches(type, event.value.type)) return 'passed'
    const subscription = this.#subscription as Subscription
    if (!wantsEvent(subscription, event.value, subscriptions.reserved)) return 'passed'
    const origin = { stream: jobStream(job.id, this.#part), generation: 1, offset: record.offset }
    const out = fanOut(topics.deliveries, lanes, event.value, [subscription], origin)
    const reached = this.#reached
    if (reached === null) return out
    const missing = out.filter(({ headers }) => !reached.has(headers[deliveryHeader.id]?.toString() ?? ''))
    return missing.length === 0 ? 'passed' : missing
  }
}

/** A subscription that is to come has not come by then. */
const unbornMs = 60_000
