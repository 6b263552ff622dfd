import type { Job } from '../core/job.ts'
import { lanesOf } from '../core/partition.ts'
import { mostReached, ReachedIds } from '../core/reached-ids.ts'
import type { Subscription } from '../core/subscription.ts'
import type { LogReader } from '../ports.ts'

/** For jobs that send only what is missing: what was delivered when they were begun here. Read once for all parts of a job. */
export class JobReached {
  readonly #reader: LogReader
  readonly #attempts: string
  readonly #lanes: number
  readonly #known = new Map<string, Promise<ReachedIds | null>>()

  constructor(reader: LogReader, attempts: string, lanes: number) {
    this.#reader = reader
    this.#attempts = attempts
    this.#lanes = lanes
  }

  /** Null: there are too many to remember. */
  of(job: Job, subscription: Subscription): Promise<ReachedIds | null> {
    const known = this.#known.get(job.id)
    if (known !== undefined) return known
    const found = this.#read(subscription)
    this.#known.set(job.id, found)
    found.catch(() => this.#known.delete(job.id))
    return found
  }

  /** No part of these is worked here any more. */
  keep(jobs: ReadonlySet<string>): void {
    for (const id of this.#known.keys()) if (!jobs.has(id)) this.#known.delete(id)
  }

  async #read(subscription: Subscription): Promise<ReachedIds | null> {
    const reached = new ReachedIds(subscription.id)
    const lanes = lanesOf(subscription, this.#lanes)
    const [starts, ends] = await Promise.all([
      this.#reader.starts(this.#attempts, lanes),
      this.#reader.ends(this.#attempts, lanes),
    ])
    for (const partition of lanes) {
      const end = ends.get(partition) ?? 0
      for (let from = starts.get(partition) ?? 0; from < end; ) {
        // Small: whoever shares this thread gets a turn in between.
        const batch = await this.#reader.fetch({ topic: this.#attempts, partition, from, maxBytes: fetchBytes })
        for (const record of batch.records) reached.add(record)
        if (reached.size > mostReached) return null
        if (batch.nextOffset <= from) break
        from = batch.nextOffset
      }
    }
    return reached
  }
}

const fetchBytes = 128 * 1024
