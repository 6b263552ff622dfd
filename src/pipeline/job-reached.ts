import type { Job } from '../core/job.ts'
import { lanesOf } from '../core/partition.ts'
import { mostReached, ReachedIds } from '../core/reached-ids.ts'
import type { Subscription } from '../core/subscription.ts'
import type { LogReader } from '../ports.ts'

/** `reading`: not known yet. `too-many`: more than can be remembered. */
export type Reached =
  | { readonly t: 'reading' }
  | { readonly t: 'too-many' }
  | { readonly t: 'known'; readonly ids: ReachedIds }

/**
 * For jobs that send only what is missing: what was delivered when they were begun here. Read once for all parts of a job, beside
 * them: a part that is to end, as before a rejoin, must not wait for it.
 */
export class JobReached {
  readonly #reader: LogReader
  readonly #attempts: string
  readonly #lanes: number
  readonly #jobs = new Map<string, { reached: Reached; failed: { readonly error: unknown } | null }>()

  constructor(reader: LogReader, attempts: string, lanes: number) {
    this.#reader = reader
    this.#attempts = attempts
    this.#lanes = lanes
  }

  /** Throws what the reading failed of, once; the next call begins it again. */
  of(job: Job, subscription: Subscription): Reached {
    const known = this.#jobs.get(job.id)
    if (known === undefined) {
      const begun = { reached: { t: 'reading' } as Reached, failed: null as { readonly error: unknown } | null }
      this.#jobs.set(job.id, begun)
      void this.#read(subscription, () => this.#jobs.get(job.id) === begun).then(
        (reached) => {
          begun.reached = reached
        },
        (error: unknown) => {
          begun.failed = { error }
        },
      )
      return begun.reached
    }
    if (known.failed === null) return known.reached
    this.#jobs.delete(job.id)
    throw known.failed.error
  }

  /** Others are not worked here any more. */
  keep(jobs: ReadonlySet<string>): void {
    for (const id of this.#jobs.keys()) if (!jobs.has(id)) this.#jobs.delete(id)
  }

  async #read(subscription: Subscription, isWanted: () => boolean): Promise<Reached> {
    const ids = new ReachedIds(subscription.id)
    const lanes = lanesOf(subscription, this.#lanes)
    const [starts, ends] = await Promise.all([
      this.#reader.starts(this.#attempts, lanes),
      this.#reader.ends(this.#attempts, lanes),
    ])
    for (const partition of lanes) {
      const end = ends.get(partition) ?? 0
      for (let from = starts.get(partition) ?? 0; from < end; ) {
        if (!isWanted()) return { t: 'reading' }
        // Small: whoever shares this thread gets a turn in between.
        const batch = await this.#reader.fetch({ topic: this.#attempts, partition, from, maxBytes: fetchBytes })
        for (const record of batch.records) ids.add(record)
        if (ids.size > mostReached) return { t: 'too-many' }
        if (batch.nextOffset <= from) break
        from = batch.nextOffset
      }
    }
    return { t: 'known', ids }
  }
}

const fetchBytes = 128 * 1024
