import type { Clock, LogReader, Observer } from '../ports.ts'
import { type Decoders, Fold } from './fold.ts'
import type { StateBuild } from './home.ts'
import { LogMerge } from './log-merge.ts'
import type { Source } from './sources.ts'

export interface BuildProgress {
  readonly records: number
  /** Left up to the end that the log had when last asked. */
  readonly left: number
  readonly perSecond: number
  /** Null: nothing is known yet. */
  readonly leftMs: number | null
}

export interface FoldWorld {
  readonly reader: LogReader
  readonly sources: readonly Source[]
  readonly clock: Clock
  readonly observer: Observer
  readonly decoders: Decoders
}

/**
 * Folds the log into an empty database, from its start to its end; what arrives meanwhile too, until only a second's worth
 * is left. Writes nothing but the database. `until`: exactly that far. Aborted: rejects with the signal's reason.
 */
export async function buildState(
  world: FoldWorld,
  target: Pick<StateBuild, 'writer'>,
  options: {
    readonly signal: AbortSignal
    readonly until?: (topic: string, partition: number) => number
    progress(progress: BuildProgress): void
  },
): Promise<BuildProgress> {
  const { reader, sources, clock, observer, decoders } = world
  const { signal, until } = options
  const merge = new LogMerge(reader, sources, clock, until === undefined ? {} : { until })
  const fold = new Fold(target.writer, { decoders, observer, remember: 4 * batchRecords })
  await target.writer.positions()
  await merge.open([])
  const startMs = clock.mono()
  let records = 0
  const now = (): BuildProgress => {
    const passedMs = Math.max(1, clock.mono() - startMs)
    const left = merge.lag
    return {
      records,
      left,
      perSecond: Math.round((records * 1000) / passedMs),
      leftMs: records === 0 ? null : Math.round((left * passedMs) / records),
    }
  }
  for (;;) {
    let roundMs = clock.mono()
    let round = 0
    for (;;) {
      signal.throwIfAborted()
      const inputs = await merge.next(batchRecords)
      if (inputs.length === 0) break
      const [answer] = await Promise.all([fold.apply(inputs), merge.fill()])
      if (answer === 'stale') throw new Error('somebody else writes into the state that is being built')
      const count = inputs.reduce((sum, { batch }) => sum + batch.records.length, 0)
      records += count
      round += count
      options.progress(now())
    }
    roundMs = clock.mono() - roundMs
    if (until !== undefined || round < batchRecords || roundMs < 1_000) break
    await merge.refresh()
  }
  return now()
}

const batchRecords = 4_000
