import type { Job } from '../core/job.ts'
import { partitionOf } from '../core/partition.ts'
import type { Clock, LogReader, Offsets } from '../ports.ts'
import type { Subscriptions } from './subscriptions.ts'

export interface PressureDeps {
  readonly clock: Clock
  readonly reader: LogReader
  readonly offsets: Offsets
  readonly subscriptions: Pick<Subscriptions, 'get'>
  /** Of the deliverers, and what they read. */
  readonly group: string
  readonly deliveries: string
  readonly lanes: number
}

/**
 * How much stands in front of what a job would write. A job that writes faster than is delivered only makes everybody in its lanes
 * wait: what it would write can as well wait in the events topic.
 */
export class Pressure {
  readonly #deps: PressureDeps
  readonly #known = new Map<string, { readonly untilMs: number; readonly backlog: Promise<number> }>()

  constructor(deps: PressureDeps) {
    this.#deps = deps
  }

  async isHigh(job: Job): Promise<boolean> {
    const { clock } = this.#deps
    const lanes = this.#lanesOf(job)
    const key = lanes.join()
    const known = this.#known.get(key)
    if (known !== undefined && clock.mono() < known.untilMs) return (await known.backlog) > mostBacklog
    if (this.#known.size > 1_000) this.#known.clear()
    const backlog = this.#backlog(lanes)
    this.#known.set(key, { untilMs: clock.mono() + askEveryMs, backlog })
    return (await backlog) > mostBacklog
  }

  /** Where all of a job's deliveries go to one lane, only that one counts. */
  #lanesOf({ subscriptionId }: Job): readonly number[] {
    const subscription = subscriptionId === null ? undefined : this.#deps.subscriptions.get(subscriptionId)
    const { lanes } = this.#deps
    if (subscription === undefined || (subscription.spread ?? 1) > 1) return Array.from({ length: lanes }, (_, i) => i)
    return [partitionOf(subscription.id, lanes)]
  }

  async #backlog(lanes: readonly number[]): Promise<number> {
    const { reader, offsets, group, deliveries: topic } = this.#deps
    const [ends, committed] = await Promise.all([
      reader.ends(topic, lanes),
      offsets.committed(
        group,
        lanes.map((partition) => ({ topic, partition })),
      ),
    ])
    return committed.reduce((n, { partition, offset }) => {
      const end = ends.get(partition) ?? 0
      return n + Math.max(0, end - (offset ?? end))
    }, 0)
  }
}

/** Deliveries in front of a job's next ones. */
const mostBacklog = 2_000
const askEveryMs = 500
