import type { JobJson } from './job-json.ts'
import type { OrderInput } from './order-input.ts'
import type { RangeInput } from './replay-range.ts'

export interface ReplayInput extends OrderInput, RangeInput {
  readonly subscription: string
  /** Events' time, epoch ms: at or after, before. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  /** Only of this type; a pattern as in subscriptions. */
  readonly type?: string | undefined
  /** Only what was not delivered, and waits for no retry. */
  readonly onlyMissing?: boolean | undefined
  readonly perSecond?: number | undefined
  /** The subscription is about to be made: nothing of it is live before. */
  readonly expected?: boolean | undefined
  /** Preview only: what would be sent if this were so; a null filter is none. */
  readonly shadow?:
    | {
        readonly filter?: Readonly<Record<string, unknown>> | null | undefined
        readonly types?: readonly string[] | undefined
      }
    | undefined
}

export interface ReplayPreview {
  readonly subscription: string
  readonly events: number
  readonly unreadable: number
  readonly wanted: number
  /** With `onlyMissing`: wanted, and delivered or on their way, so not sent. */
  readonly reached: number
  readonly shadow: { readonly wanted: number; readonly added: number; readonly removed: number } | null
  /** False: it took too long, or was interrupted; the counts are of what was looked at. */
  readonly complete: boolean
  /** The first that would be sent; with `shadow` those for which something changes. */
  readonly examples: readonly {
    readonly eventId: string
    readonly type: string
    readonly timeMs: number
    readonly sent: boolean
  }[]
}

export interface JobRedriveInput {
  readonly subscription?: string | undefined
  readonly tenant?: string | undefined
  readonly reason?: string | undefined
  /** As it stands in the dead letter: `503`, `timeout`. */
  readonly lastError?: string | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly perSecond?: number | undefined
  readonly by?: string | undefined
  /** For whoever looks later. */
  readonly why?: string | undefined
}

/** Replays and redrives that the service works, and that are recorded in `control`. */
export interface JobOperations {
  replay(input: ReplayInput): Promise<JobJson>
  preview(input: ReplayInput): Promise<ReplayPreview>
  redrive(input: JobRedriveInput): Promise<JobJson>
  /** Newest first; those that are not over, or all. */
  list(filter: { readonly all?: boolean; readonly limit?: number }): Promise<{ readonly jobs: readonly JobJson[] }>
  show(id: string): Promise<JobJson>
  /** Nothing more is written within a second; what is written goes its way. One that is over stays as it is. */
  cancel(id: string, input: OrderInput): Promise<JobJson>
}
