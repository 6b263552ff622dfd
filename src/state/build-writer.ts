import { Worker } from 'node:worker_threads'
import { HooktideError } from '../core/error.ts'
import type { BuildAnswer, BuildRequest } from './build-thread.ts'
import { healthRow } from './flat-attempt.ts'
import { deliveryRow } from './flat-delivery.ts'
import { MaybeKnown } from './maybe-known.ts'
import { sqliteBatch } from './sqlite-batch.ts'
import type { HealthKey } from './sqlite-reads.ts'
import type { FlatDelivery, FlatHealth } from './tables.ts'
import type { StateChange, StateWriter, StoredRow } from './writer.ts'

/**
 * Writes a state that is being built, in a thread of its own, so that the log is read and folded meanwhile. `commit` says done
 * when the batch is handed over; two may be on their way, and one that fails rejects whatever is asked next. Nobody else
 * knows the database and it is thrown away when anything goes wrong, so nothing can be stale.
 */
export class BuildWriter implements StateWriter {
  readonly #worker: Worker
  readonly #waiting: { resolve(value: unknown): void; reject(error: Error): void }[] = []
  readonly #known = new MaybeKnown()
  #commits: Promise<unknown>[] = []
  #failed: Error | null = null
  #closed = false

  /** `path`: a database that has its tables and that nobody has open. */
  constructor(path: string) {
    this.#worker = new Worker(new URL('./build-thread.ts', import.meta.url), { workerData: { path } })
    this.#worker.on('message', (answer: BuildAnswer) => {
      const first = this.#waiting.shift()
      if (answer.ok) first?.resolve(answer.value)
      else first?.reject(this.#fail(answer.reason))
    })
    this.#worker.on('error', (error) => this.#lose(error.message))
    this.#worker.on('exit', () => this.#lose('its thread has ended'))
  }

  async positions() {
    return []
  }

  async nextNo(): Promise<number> {
    return 1
  }

  async rows(ids: readonly string[]): Promise<ReadonlyMap<string, StoredRow>> {
    // Nearly all are new, and asking waits for the batches that are on their way.
    const asked = ids.filter((id) => this.#known.has(id))
    if (asked.length === 0) return new Map()
    const flats = (await this.#ask({ t: 'rows', ids: asked })) as FlatDelivery[]
    return new Map(flats.map((flat) => [flat.id, { no: flat.no, row: deliveryRow(flat) }]))
  }

  async health(keys: readonly HealthKey[]) {
    return ((await this.#ask({ t: 'health', keys })) as FlatHealth[]).map(healthRow)
  }

  async commit(change: StateChange): Promise<'done'> {
    for (const { row, before } of change.rows) if (before === null) this.#known.add(row.id)
    const written = this.#ask({ t: 'commit', json: JSON.stringify(sqliteBatch(change)) })
    written.catch(() => undefined)
    this.#commits.push(written)
    if (this.#commits.length > commitsAhead) await this.#commits.shift()
    return 'done'
  }

  async forget(): Promise<number> {
    throw new HooktideError('internal', 'nothing is forgotten in a state that is being built')
  }

  async erase(): Promise<number> {
    throw new HooktideError('internal', 'nothing is erased in a state that is being built')
  }

  /** Everything is written, indexed and durable, and the file is closed. */
  async finish(): Promise<void> {
    await this.#end({ t: 'finish' })
  }

  /** Everything is written, and the file is closed. */
  async close(): Promise<void> {
    await this.#end({ t: 'close' })
  }

  /** Closed as it is. Idempotent. */
  async abandon(): Promise<void> {
    this.#closed = true
    await this.#worker.terminate()
  }

  async #end(request: BuildRequest): Promise<void> {
    if (this.#closed) return
    await Promise.all(this.#commits)
    await this.#ask(request)
    await this.abandon()
  }

  #ask(request: BuildRequest): Promise<unknown> {
    if (this.#failed !== null) return Promise.reject(this.#failed)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#worker.postMessage(request)
    })
  }

  #lose(reason: string): void {
    if (this.#closed && this.#waiting.length === 0) return
    const error = this.#fail(reason)
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }

  #fail(reason: string): Error {
    this.#failed ??= new HooktideError('state.unavailable', `the state that is being built: ${reason}`, {
      remedy: 'Check the space and the rights of state.path, then begin again.',
    })
    return this.#failed
  }
}

const commitsAhead = 2
