import { type Delivery, lineHeader } from '../core/delivery.ts'
import { isOrderedLine, type Line, lineKeyOf, type Queued } from '../core/line.ts'
import type { InRecord } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'

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

/** The line whose orders hold for it. Parked as overflow it stands in none, and still belongs to the one it left. */
export function lineForOrders(work: Work, subscription: Subscription | undefined): string | null {
  const key = lineKeyIn(work)
  if (key !== null && isOrderedLine(key)) return key
  return subscription === undefined ? key : lineKeyOf(subscription, work.delivery)
}

/** The lane, as the executor sees it. */
export interface WorkOwner {
  /**
   * Last check and hand-over in one synchronous step: `go` means the work is now open and its POST must be made at
   * once; `dropped` that the lane has no use for it any more (lost, paused, parked instead).
   */
  begin(work: Work): 'go' | 'dropped'
}
