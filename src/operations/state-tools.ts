import type { StateStore } from '../ports.ts'
import type { Cluster } from './cluster.ts'

/** What commands may do with the delivery state without seeing where it is kept. */
export interface StateTools {
  /** Folder, or database and schema. */
  readonly where: string
  readonly store: StateStore
  /** Folds the log from its start into a new database beside the live one and puts it in its place. Nothing else is written. */
  rebuild(cluster: Cluster, options: StateRun): Promise<StateBuilt>
  /** Rebuilds beside the live state, up to where that is, and compares. */
  verify(cluster: Cluster, options: StateRun & { report(difference: StateDifference): void }): Promise<StateVerdict>
  /** Rows of one subscription, tenant or event; returns how many deliveries. `dryRun`: only counts. */
  erase(what: StateErased, dryRun: boolean): Promise<number>
  close(): Promise<void>
}

export interface StateRun {
  readonly signal: AbortSignal
  progress(progress: StateProgress): void
}

export interface StateProgress {
  readonly doing: 'folding' | 'indexing' | 'comparing'
  /** Records, or rows. */
  readonly done: number
  readonly left: number
  readonly perSecond: number
  readonly leftMs: number | null
}

export interface StateBuilt {
  readonly records: number
  readonly perSecond: number
}

export interface StateDifference {
  readonly table: string
  readonly key: string
  readonly columns?: readonly { readonly column: string; readonly live: unknown; readonly rebuilt: unknown }[]
  readonly missing?: 'live' | 'rebuilt'
}

export interface StateVerdict {
  readonly records: number
  readonly rows: number
  readonly differences: number
  /** Rows that differ only in what the log can not tell any more. */
  readonly forgotten: number
}

export interface StateErased {
  readonly by: 'subscription' | 'tenant' | 'event'
  readonly id: string
}
