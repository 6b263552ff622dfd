import { isOver, type Job } from '../core/job.ts'
import type { LogReader, Producer } from '../ports.ts'
import { type JobLog, placeOf } from './job-log.ts'
import { JobPart } from './job-part.ts'
import { Pressure } from './job-pressure.ts'
import { JobReached } from './job-reached.ts'
import { RedriveWork } from './job-redrive.ts'
import { ReplayWork } from './job-replay.ts'
import type { RouterDeps } from './router-deps.ts'

export interface JobsDeps {
  readonly router: RouterDeps
  readonly log: JobLog
  readonly producer: Producer
  readonly reader: LogReader
  /** Of the stream of an events partition that is ours; null: it is not. */
  generationOf(stream: string): number | null
}

/**
 * Works the parts of jobs that are this process's: those of the events partitions whose router it is. Dead letters of
 * partition p go with partition p modulo their number of the first events topic. So the router's group says who works
 * what, and a part has a new owner as soon as its partition has.
 */
export class Jobs {
  readonly #deps: JobsDeps
  readonly #pressure: Pressure
  readonly #reached: JobReached
  readonly #parts = new Map<string, JobPart>()
  /** Partitions of the first events topic. */
  #count = 0
  #held = true
  #unlisten: (() => void) | null = null

  constructor(deps: JobsDeps) {
    this.#deps = deps
    const { kafka, clock, subscriptions, topics, lanes, deliverers } = deps.router
    this.#pressure = new Pressure({
      ...{ clock, subscriptions, lanes, reader: deps.reader, offsets: kafka.offsets },
      group: deliverers,
      deliveries: topics.deliveries,
    })
    this.#reached = new JobReached(deps.reader, topics.attempts, lanes)
  }

  async start(): Promise<void> {
    const { router, log } = this.#deps
    const topic = router.topics.events[0] as string
    this.#count = (await router.kafka.partitions([topic])).get(topic) ?? 1
    this.#held = false
    this.#unlisten = log.control.onJob(() => this.look())
    this.look()
  }

  /** Parts that are being worked here. */
  get running(): number {
    return this.#parts.size
  }

  /** Starts what is ours and not begun, ends what is no longer. */
  look(): void {
    for (const [key, part] of this.#parts) if (this.#generation(part.part) === null) this.#end(key, part)
    if (this.#held) return
    const { jobs } = this.#deps.log.control
    for (const job of jobs.all()) {
      for (const name of job.parts.keys()) {
        const progress = jobs.part(job.id, name)
        if (progress !== undefined && !isOver(progress)) this.#begin(job, name)
      }
    }
  }

  /** Before a rejoin: everything ends, and says how far it is. */
  async hold(): Promise<void> {
    this.#held = true
    await Promise.all([...this.#parts].map(([key, part]) => this.#end(key, part)))
  }

  release(): void {
    if (this.#unlisten === null) return
    this.#held = false
    this.look()
  }

  async stop(): Promise<void> {
    this.#unlisten?.()
    this.#unlisten = null
    await this.hold()
  }

  #begin(job: Job, part: string): void {
    const key = `${job.id}/${part}`
    const generation = this.#generation(part)
    if (generation === null || this.#parts.has(key)) return
    const { router, log, producer, reader } = this.#deps
    const { clock, observer } = router
    const work = job.kind === 'replay' ? new ReplayWork(router, part, this.#reached) : new RedriveWork(router, part)
    const congested = (job: Job) => this.#pressure.isHigh(job)
    const run = new JobPart({ log, clock, observer, reader, producer, generation, work, congested }, job.id, part)
    this.#parts.set(key, run)
    observer.log('info', 'job.part_started', { job: job.id, part, kind: job.kind, by: job.by })
    void run.run().finally(() => {
      if (this.#parts.get(key) === run) this.#parts.delete(key)
      this.#reached.keep(new Set([...this.#parts.values()].map(({ id }) => id)))
    })
  }

  async #end(key: string, part: JobPart): Promise<void> {
    this.#parts.delete(key)
    await part.stop()
  }

  #generation(part: string): number | null {
    const { topic, partition } = placeOf(part)
    const { events } = this.#deps.router.topics
    const stream = events.includes(topic) ? part : `${events[0]}/${partition % this.#count}`
    return this.#deps.generationOf(stream)
  }
}
