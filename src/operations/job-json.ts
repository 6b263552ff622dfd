import { isOver, type Job, type JobKind, type PartProgress, type PartRange, type PartState } from '../core/job.ts'
import type { JobState, JobTable } from '../core/job-table.ts'

export interface JobPartJson {
  readonly part: string
  readonly state: PartState
  readonly from: number
  /** Null: not known before it has caught up with live traffic. */
  readonly to: number | null
  readonly next: number
  readonly written: number
  readonly error: string | null
}

export interface JobJson {
  readonly id: string
  readonly kind: JobKind
  readonly state: JobState
  readonly by: string
  readonly atMs: number
  readonly reason: string | null
  readonly cancelledBy: string | null
  readonly subscription: string | null
  readonly perSecond: number | null
  readonly untilLive: boolean
  readonly filter: Job['filter']
  /** Deliveries written. */
  readonly written: number
  /** Records looked at and not wanted. */
  readonly passed: number
  readonly unreadable: number
  /** Offsets dealt with, and how many there are. */
  readonly done: number
  readonly total: number
  readonly parts: readonly JobPartJson[]
}

/** `ends`: where partitions end now, for parts that go on until live. */
export function jobJson(jobs: JobTable, job: Job, ends: ReadonlyMap<string, number> = new Map()): JobJson {
  const parts = [...job.parts].map(([part, range]) => {
    const progress = jobs.part(job.id, part) as PartProgress
    return { part, range, progress, to: boundOf(range, progress) ?? ends.get(part) ?? progress.next }
  })
  const sum = (of: (entry: (typeof parts)[number]) => number) => parts.reduce((n, entry) => n + of(entry), 0)
  const { id, kind, by, atMs, reason, cancelledBy, subscriptionId: subscription, perSecond, untilLive, filter } = job
  return {
    ...{ id, kind, state: jobs.state(job), by, atMs, reason, cancelledBy, subscription, perSecond, untilLive, filter },
    written: sum(({ progress }) => progress.written),
    passed: sum(({ progress }) => progress.passed),
    unreadable: sum(({ progress }) => progress.unreadable),
    done: sum(({ range, progress }) => Math.max(0, progress.next - range.from)),
    total: sum(({ range, progress, to }) => Math.max(0, (isOver(progress) ? progress.next : to) - range.from)),
    parts: parts.map(({ part, range, progress }) => ({
      part,
      state: progress.state,
      from: range.from,
      to: boundOf(range, progress),
      next: progress.next,
      written: progress.written,
      error: progress.error,
    })),
  }
}

function boundOf(range: PartRange, progress: PartProgress): number | null {
  return range.to ?? progress.cut
}
