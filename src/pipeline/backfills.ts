import { isOver } from '../core/job.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Clock } from '../ports.ts'
import type { JobLog } from './job-log.ts'
import type { Subscriptions } from './subscriptions.ts'

export interface BackfillsDeps {
  readonly log: JobLog
  readonly clock: Clock
  readonly subscriptions: Pick<Subscriptions, 'version'>
}

/**
 * Where live traffic begins for subscriptions that are replayed until live: below the cut an event is the job's, from the cut on
 * it is the stream's; before there is a cut everything is the job's. No gap and no double, whoever crashes:
 *
 * - A part says `closing` before the cut is asked for, and the cut is where the log ends then. So an event at or behind the
 *   cut was fetched by anybody after `closing` was in the log; `ready` reads `control` on after the fetch, and waits for
 *   the cut. An event below the cut is never a stream's, in this generation.
 * - The order of a line holds: a stream comes to the cut only when the job has written what is below.
 */
export class Backfills {
  readonly #deps: BackfillsDeps
  /** Version of the subscriptions' table up to which the jobs are known: a job is written before its subscription. */
  #known = -1

  constructor(deps: BackfillsDeps) {
    this.#deps = deps
  }

  /**
   * Before events up to `last` of a stream are matched, after the subscriptions are fresh. False: given up meanwhile.
   * Rejects when `control` can't be read.
   */
  async ready(stream: string, generation: number, last: number, givenUp: () => boolean): Promise<boolean> {
    const { log, subscriptions, clock } = this.#deps
    const { jobs } = log.control
    const version = subscriptions.version
    const unfinished = () => [...jobs.unfinishedBackfills(stream)]
    if (version === this.#known && (!jobs.hasBackfills() || unfinished().length === 0)) return true
    await log.control.freshen()
    this.#known = Math.max(this.#known, version)
    for (const job of unfinished()) {
      for (;;) {
        const part = jobs.part(job.id, stream)
        if (part === undefined || part.state !== 'closing') break
        if (part.cut === null) await log.settle(job, stream, generation)
        else if (last < part.cut) break
        else await this.#change(job.id, clock)
        if (givenUp()) return false
      }
    }
    return true
  }

  /** Of those that want the event those that get it from this stream. */
  live(
    wanting: readonly Subscription[],
    at: { readonly stream: string; readonly generation: number; readonly offset: number },
  ): readonly Subscription[] {
    const { jobs } = this.#deps.log.control
    if (!jobs.hasBackfills()) return wanting
    return wanting.filter((subscription) => {
      for (const job of jobs.backfillsOf(subscription.id)) {
        if (job.tenant !== null && job.tenant !== subscription.tenant) continue
        const part = jobs.part(job.id, at.stream)
        if (part === undefined) continue
        if (part.cut === null) {
          if (isOver(part)) continue
          return false
        }
        // Another generation: the topic was made anew, or somebody wants all of it again.
        if (part.generation === at.generation && at.offset < part.cut) return false
      }
      return true
    })
  }

  #change(id: string, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        stop()
        cancel()
        resolve()
      }
      const stop = this.#deps.log.control.onJob((changed) => {
        if (changed === id) done()
      })
      const cancel = clock.after(lookAgainMs, done)
    })
  }
}

/** A stream that waits must notice that it is held. */
const lookAgainMs = 100
