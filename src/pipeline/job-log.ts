import { type Control, controlKey } from '../core/control.ts'
import { type Job, mergeProgress, type PartProgress, progressControl } from '../core/job.ts'
import type { JobTable } from '../core/job-table.ts'
import { emptyHeaders } from '../core/record.ts'
import type { Clock, LogReader, Producer } from '../ports.ts'

/** The `control` topic as jobs need it: followed, and asked to be as new as it is. */
export interface JobControl {
  readonly jobs: JobTable
  /** Everything that stood in `control` at the call has been applied. */
  freshen(): Promise<void>
  /** Called with a job's id when something of it has changed. */
  onJob(listener: (id: string) => void): () => void
}

export interface JobLogDeps {
  readonly control: JobControl
  readonly topic: string
  readonly clock: Clock
  readonly reader: LogReader
  readonly producer: Producer
}

/** Writes what parts of jobs have come to, and settles where live traffic begins. */
export class JobLog {
  readonly #deps: JobLogDeps

  constructor(deps: JobLogDeps) {
    this.#deps = deps
  }

  get control(): JobControl {
    return this.#deps.control
  }

  /** Acknowledged and applied here when it resolves. */
  async save(job: Job, part: string, progress: PartProgress): Promise<void> {
    const { control, topic, producer, clock } = this.#deps
    const known = control.jobs.part(job.id, part)
    // What is known goes into each record: compaction leaves only the last.
    const merged = known === undefined ? progress : mergeProgress(known, progress)
    await producer.send([recordOf(topic, progressControl(job, part, merged, Math.floor(clock.now())))])
    await control.freshen()
  }

  /**
   * The first offset that is live's and not the job's: where the log ends now, unless somebody said before. Only for a part
   * that is `closing` in the log: whoever reads an event at or behind the cut then knows that there is one, since the event
   * is younger than that record. `generation` of the stream that asks.
   */
  async settle(job: Job, part: string, generation: number): Promise<number> {
    const { control, reader } = this.#deps
    await control.freshen()
    const known = control.jobs.part(job.id, part)
    if (known === undefined) return 0
    if (known.cut !== null) return known.cut
    const { topic, partition } = placeOf(part)
    const cut = (await reader.ends(topic, [partition])).get(partition) ?? 0
    await this.save(job, part, { ...known, cut, generation })
    return control.jobs.part(job.id, part)?.cut ?? cut
  }
}

function recordOf(topic: string, control: Control) {
  const value = Buffer.from(JSON.stringify(control))
  return { topic, partition: 0, key: controlKey(control), value, headers: emptyHeaders }
}

/** `orders/3` → topic and partition; a topic's name has no slash. */
export function placeOf(part: string): { topic: string; partition: number } {
  const slash = part.lastIndexOf('/')
  return { topic: part.slice(0, slash), partition: Number(part.slice(slash + 1)) }
}
