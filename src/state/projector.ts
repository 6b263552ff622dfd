import { HooktideError, messageOf } from '../core/error.ts'
import { Fold } from './fold.ts'
import type { OpenState, StateHome } from './home.ts'
import { LogMerge } from './log-merge.ts'
import { logStarts } from './log-starts.ts'
import type { FoldWorld } from './rebuild.ts'

export interface ProjectorOptions extends FoldWorld {
  readonly home: StateHome
  readonly attemptsTopic: string
  /** How often the log is looked at when there was nothing new, ms. */
  readonly pollMs?: number
  readonly batchRecords?: number
  /** How often what the log has forgotten is taken out of the state, ms. */
  readonly forgetMs?: number
}

/** What a projector is about, for health and metrics. */
export interface ProjectorVitals {
  readonly state: 'starting' | 'folding' | 'waiting' | 'standing-by' | 'failing' | 'stopped'
  /** Records in the log, as far as it is known, that are not in the state. */
  readonly lag: number
  readonly folded: number
  readonly error: string | null
}

/**
 * Follows the log and keeps the live state at it. Positions stand in the database and move with what they brought, so it can
 * end anywhere and begin again, and two of them on one database do no harm: the second finds its batch stale and goes on
 * from where the first is. A database that a rebuild exchanged is gone over to between two batches.
 */
export class Projector {
  readonly #options: ProjectorOptions
  readonly #ending = new AbortController()
  #running: Promise<void> | null = null
  #state: ProjectorVitals['state'] = 'starting'
  #lag = 0
  #folded = 0
  #error: string | null = null

  constructor(options: ProjectorOptions) {
    this.#options = options
  }

  get vitals(): ProjectorVitals {
    return { state: this.#state, lag: this.#lag, folded: this.#folded, error: this.#error }
  }

  /** Returns at once: a state that can't be kept now is no reason not to deliver. */
  start(): void {
    if (this.#ending.signal.aborted) return
    this.#running ??= this.#run()
  }

  /** After the batch that is being written. Idempotent. */
  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#running
    this.#state = 'stopped'
  }

  async #run(): Promise<void> {
    const { observer } = this.#options
    let waitMs = 0
    while (!this.#ending.signal.aborted) {
      try {
        await this.#follow(() => {
          waitMs = 0
        })
      } catch (error) {
        this.#state = 'failing'
        const reason = messageOf(error)
        // Said once, not with every try.
        if (this.#error !== reason) {
          const remedy = error instanceof HooktideError ? error.remedy : undefined
          observer.log('error', 'projector.failed', { reason, remedy, folded: this.#folded })
        }
        this.#error = reason
        observer.count('state_failed')
        waitMs = Math.min(30_000, waitMs * 2 || 500)
        await this.#sleep(waitMs)
      }
    }
  }

  /** One database, until it is exchanged or something fails. */
  async #follow(progressed: () => void): Promise<void> {
    const { home, reader, sources, clock, observer, decoders } = this.#options
    const { pollMs = 250, batchRecords = 2_000, forgetMs = 3_600_000 } = this.#options
    const open = await home.open()
    try {
      const fold = new Fold(open.writer, { decoders, observer })
      const merge = new LogMerge(reader, sources, clock)
      await merge.open(await open.writer.positions())
      let forgotMs = Number.NEGATIVE_INFINITY
      while (!this.#ending.signal.aborted) {
        if ((await home.current()) !== open.name) {
          observer.log('info', 'projector.exchanged', { where: home.where })
          return
        }
        if (clock.mono() - forgotMs >= forgetMs) {
          forgotMs = clock.mono()
          if (await this.#forget(open)) {
            fold.reset()
            await merge.open(await open.writer.positions())
          }
        }
        const inputs = await merge.next(batchRecords)
        this.#lag = merge.lag
        if (inputs.length === 0) {
          this.#state = 'waiting'
          await this.#sleep(pollMs)
          await merge.refresh()
          continue
        }
        const startMs = clock.mono()
        if ((await fold.apply(inputs)) === 'stale') {
          // Somebody else folds into it too, or took rows out.
          this.#state = 'standing-by'
          await this.#sleep(pollMs)
          await merge.open(await open.writer.positions())
          continue
        }
        this.#state = 'folding'
        this.#error = null
        progressed()
        const count = inputs.reduce((sum, { batch }) => sum + batch.records.length, 0)
        this.#folded += count
        observer.count('state_folded', count)
        observer.time('state_batch', clock.mono() - startMs)
        // Whoever shares this thread gets a turn.
        await new Promise<void>((resolve) => clock.after(0, resolve))
      }
    } finally {
      await open.close()
    }
  }

  /** Returns whether anything was taken out. */
  async #forget(open: OpenState): Promise<boolean> {
    const { reader, sources, attemptsTopic, observer } = this.#options
    const starts = await logStarts(reader, sources, attemptsTopic)
    let forgotten = 0
    for (;;) {
      const count = await open.writer.forget(starts, forgetRows)
      forgotten += count
      if (count < forgetRows || this.#ending.signal.aborted) break
    }
    if (forgotten > 0) observer.log('info', 'projector.forgotten', { rows: forgotten })
    return forgotten > 0
  }

  #sleep(ms: number): Promise<void> {
    const { signal } = this.#ending
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.#options.clock.after(ms, done)
      signal.addEventListener('abort', done)
    })
  }
}

const forgetRows = 2_000
