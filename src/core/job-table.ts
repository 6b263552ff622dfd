import type { Control } from './control.ts'
import { decodeJob, decodeProgress, isOver, type Job, mergeProgress, type PartProgress, startOf } from './job.ts'
import type { Result } from './result.ts'

export type JobState = 'running' | 'cancelling' | 'done' | 'cancelled' | 'failed'

/** The jobs in `control`, folded in log order. */
export class JobTable {
  readonly #jobs = new Map<string, Job>()
  readonly #progress = new Map<string, Map<string, PartProgress>>()
  /** Replays until live, by subscription: they say where its live traffic begins. */
  readonly #backfills = new Map<string, Map<string, Job>>()

  /** `key` as in the topic, with `job:`. A failure says what can't be read; nothing is changed then. */
  apply(key: string, control: Control | null): Result<unknown> {
    const target = key.slice('job:'.length)
    const slash = target.indexOf('/')
    if (slash === -1) return this.#applyJob(target, control)
    const id = target.slice(0, slash)
    const part = target.slice(slash + 1)
    if (control === null) {
      this.#progress.get(id)?.delete(part)
      return { ok: true, value: null }
    }
    const decoded = decodeProgress(control)
    if (!decoded.ok) return decoded
    const parts = this.#progress.get(id) ?? new Map<string, PartProgress>()
    const known = parts.get(part)
    parts.set(part, known === undefined ? decoded.value : mergeProgress(known, decoded.value))
    this.#progress.set(id, parts)
    return decoded
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id)
  }

  all(): IterableIterator<Job> {
    return this.#jobs.values()
  }

  /** Undefined: the job has no such part. */
  part(id: string, part: string): PartProgress | undefined {
    const range = this.#jobs.get(id)?.parts.get(part)
    if (range === undefined) return undefined
    return this.#progress.get(id)?.get(part) ?? startOf(range)
  }

  state(job: Job): JobState {
    const parts = [...job.parts.keys()].map((part) => this.part(job.id, part) as PartProgress)
    if (!parts.every(isOver)) return job.cancelledBy === null ? 'running' : 'cancelling'
    if (parts.some(({ state }) => state === 'failed')) return 'failed'
    return job.cancelledBy === null ? 'done' : 'cancelled'
  }

  unfinishedParts(job: Job): number {
    let n = 0
    for (const part of job.parts.keys()) if (!isOver(this.part(job.id, part) as PartProgress)) n++
    return n
  }

  hasBackfills(): boolean {
    return this.#backfills.size > 0
  }

  /** Replays until live of this subscription, of any time. */
  backfillsOf(subscriptionId: string): Iterable<Job> {
    return this.#backfills.get(subscriptionId)?.values() ?? []
  }

  /** Replays until live that have an unfinished part for this stream. */
  *unfinishedBackfills(stream: string): Iterable<Job> {
    for (const jobs of this.#backfills.values()) {
      for (const job of jobs.values()) {
        const part = this.part(job.id, stream)
        if (part !== undefined && !isOver(part)) yield job
      }
    }
  }

  #applyJob(id: string, control: Control | null): Result<unknown> {
    const decoded = control === null ? null : decodeJob(control)
    if (decoded?.ok === false) return decoded
    const before = this.#jobs.get(id)
    if (before !== undefined) this.#unlist(before)
    if (decoded === null) {
      this.#jobs.delete(id)
      this.#progress.delete(id)
      return { ok: true, value: null }
    }
    const job = decoded.value
    this.#jobs.set(id, job)
    if (job.untilLive && job.subscriptionId !== null) {
      const own = this.#backfills.get(job.subscriptionId) ?? new Map<string, Job>()
      this.#backfills.set(job.subscriptionId, own.set(id, job))
    }
    return decoded
  }

  #unlist(job: Job): void {
    if (job.subscriptionId === null) return
    const own = this.#backfills.get(job.subscriptionId)
    own?.delete(job.id)
    if (own?.size === 0) this.#backfills.delete(job.subscriptionId)
  }
}
