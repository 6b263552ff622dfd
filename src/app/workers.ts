import type { Clock, Observer } from '../ports.ts'

export interface WorkerEnd {
  readonly code: number | null
  readonly signal: string | null
}

/** A running worker process. */
export interface WorkerProcess {
  readonly pid: number
  readonly ended: Promise<WorkerEnd>
  /** `stop`: drain and end. `abort`: end now. Does nothing to one that has ended. */
  tell(word: 'stop' | 'abort'): void
}

export interface WorkersDeps {
  readonly count: number
  readonly clock: Clock
  readonly observer: Observer
  start(index: number): WorkerProcess
}

/** Ended sooner after the first start than this, with an exit code: what is wrong will still be wrong next time. */
const earlyMs = 20_000
const firstPauseMs = 1_000
const longestPauseMs = 30_000
/** Having run for so long, it starts again with the first pause. */
const steadyMs = 60_000

/**
 * Several processes of the service on one machine: Kafka divides the lanes among them as among machines. One that ends by
 * itself is started again, its lanes being at work elsewhere meanwhile; one that can't even start ends all, with its exit
 * code, as the single process would.
 */
export class Workers {
  readonly #deps: WorkersDeps
  readonly #running = new Map<number, WorkerProcess>()
  readonly #pauses = new Set<() => void>()
  #stopping = false
  #exitCode = 0

  constructor(deps: WorkersDeps) {
    this.#deps = deps
  }

  /** Resolves when all have ended, to the exit code of the whole. */
  async run(): Promise<number> {
    const { count, observer } = this.#deps
    observer.log('info', 'workers.starting', { workers: count })
    await Promise.all(Array.from({ length: count }, (_, index) => this.#keep(index)))
    observer.log('info', 'workers.ended', { exitCode: this.#exitCode })
    return this.#exitCode
  }

  stop(): void {
    this.#stopping = true
    for (const worker of this.#running.values()) worker.tell('stop')
    for (const end of [...this.#pauses]) end()
  }

  abort(): void {
    this.stop()
    for (const worker of this.#running.values()) worker.tell('abort')
  }

  async #keep(index: number): Promise<void> {
    const { clock, observer } = this.#deps
    let pauseMs = firstPauseMs
    let first = true
    while (!this.#stopping) {
      const startedMs = clock.mono()
      const worker = this.#deps.start(index)
      this.#running.set(index, worker)
      observer.log('info', 'worker.started', { worker: index, pid: worker.pid })
      const { code, signal } = await worker.ended
      this.#running.delete(index)
      const ranMs = Math.round(clock.mono() - startedMs)
      const fields = { worker: index, pid: worker.pid, code, signal, ranMs }
      if (this.#stopping) {
        observer.log('info', 'worker.stopped', fields)
        if (code !== 0 && this.#exitCode === 0) this.#exitCode = code ?? 1
        return
      }
      if (first && ranMs < earlyMs && code !== null) {
        observer.log('error', 'worker.not_started', { ...fields, remedy: 'its own last lines say why' })
        this.#exitCode = code === 0 ? 1 : code
        this.stop()
        return
      }
      first = false
      if (ranMs >= steadyMs) pauseMs = firstPauseMs
      observer.log('error', 'worker.ended', { ...fields, againInMs: pauseMs })
      await this.#pause(pauseMs)
      pauseMs = Math.min(longestPauseMs, pauseMs * 2)
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        this.#pauses.delete(end)
        resolve()
      }
      const cancel = this.#deps.clock.after(ms, end)
      this.#pauses.add(end)
    })
  }
}
