import { deadMatches, decodeDead, redriveRecord } from '../core/dead-letter.ts'
import { type Job, jobStream } from '../core/job.ts'
import { laneOf } from '../core/partition.ts'
import type { InRecord } from '../core/record.ts'
import { placeOf } from './job-log.ts'
import type { Footing, PartWork, PartYield } from './job-part.ts'
import type { RouterDeps } from './router-deps.ts'

/** Dead letters sent again: same ids, same bodies, each delivery once however often it died. */
export class RedriveWork implements PartWork {
  readonly #deps: Pick<RouterDeps, 'subscriptions' | 'topics' | 'lanes'>
  readonly #part: string
  readonly #seen = new Set<string>()

  constructor(deps: Pick<RouterDeps, 'subscriptions' | 'topics' | 'lanes'>, part: string) {
    this.#deps = deps
    this.#part = part
  }

  async footing(): Promise<Footing> {
    await this.#deps.subscriptions.freshen()
    return { t: 'ready' }
  }

  deliveriesOf(job: Job, record: InRecord): PartYield {
    const letter = this.#chosen(job, record)
    if (letter === null) return 'passed'
    if (letter.delivery === null) return 'unreadable'
    const { id, subscriptionId } = letter.delivery
    const subscription = this.#deps.subscriptions.get(subscriptionId)
    // Of a subscription that is gone nothing would come.
    if (subscription === undefined || this.#seen.has(id)) return 'passed'
    this.#seen.add(id)
    const { topics, lanes } = this.#deps
    const origin = { stream: jobStream(job.id, this.#part), generation: 1, offset: record.offset }
    const again = redriveRecord(letter, origin, topics.deliveries, laneOf(subscription, id, lanes))
    return again === null ? 'unreadable' : [again]
  }

  remember(job: Job, record: InRecord): void {
    const letter = this.#chosen(job, record)
    if (letter?.delivery != null) this.#seen.add(letter.delivery.id)
  }

  #chosen(job: Job, record: InRecord) {
    const { deadReason, lastError, fromMs, toMs } = job.filter
    const letter = decodeDead(placeOf(this.#part).partition, record)
    const wanted = deadMatches(letter, {
      subscription: job.subscriptionId ?? undefined,
      tenant: job.tenant ?? undefined,
      reason: deadReason,
      lastError,
      since: fromMs,
      until: toMs,
    })
    return wanted ? letter : null
  }
}
