import { type Delivery, lineHeader } from '../core/delivery.ts'
import type { Line, Queued } from '../core/line.ts'
import type { InRecord } from '../core/record.ts'

/** A delivery in memory, on its way from a lane to the executor and back. */
export interface Work extends Queued {
  readonly delivery: Delivery
  readonly record: InRecord
  /** Index into the lane's tiers when `source` is `tier`. */
  readonly tier: number
  readonly bytes: number
  readonly owner: WorkOwner
  /** Epoch ms at which it could have been started; for the age of the oldest ready delivery. */
  readyAtMs: number
  line: Line<Work> | null
}

/** The line it stands in, or led before an operator let that go on without it. */
export function lineKeyIn(work: Pick<Work, 'line' | 'record'>): string | null {
  return work.line?.key ?? work.record.headers[lineHeader]?.toString() ?? null
}

/** The lane, as the executor sees it. */
export interface WorkOwner {
  /**
   * Last check and hand-over in one synchronous step: `go` means the work is now open and its POST must be made at
   * once; `dropped` that the lane has no use for it any more (lost, paused, parked instead).
   */
  begin(work: Work): 'go' | 'dropped'
}
