import { HooktideError, messageOf } from '../core/error.ts'
import type { InRecord } from '../core/record.ts'
import type { Clock, LogReader, Observer } from '../ports.ts'

export interface TableDeps {
  readonly topic: string
  readonly clock: Clock
  readonly observer: Observer
  /** For following: it long-polls. */
  readonly followReader: LogReader
  /** For asking where the log ends. */
  readonly askReader: LogReader
  /** Applies one record, in log order per partition; a null value is a tombstone. Must not throw. */
  apply(record: InRecord, partition: number): void
}

/**
 * A compacted topic followed from its beginning. `load` resolves when everything that was there has been applied;
 * `freshen` when everything has that was there at the call, or not longer before it than is allowed.
 */
export class Table {
  readonly #deps: TableDeps
  readonly #positions = new Map<number, number>()
  #waiters: { ends: ReadonlyMap<number, number>; resolve: () => void; reject: (error: Error) => void }[] = []
  #asking: Promise<void> | null = null
  #askedMs = Number.NEGATIVE_INFINITY
  /** What was there then has been applied; mono ms. */
  #freshMs = Number.NEGATIVE_INFINITY
  #stopped = false
  #refused: HooktideError | null = null
  #stopWaiters: (() => void)[] = []

  constructor(deps: TableDeps) {
    this.#deps = deps
  }

  async load(): Promise<void> {
    const { topic, askReader } = this.#deps
    const starts = await askReader.starts(topic)
    const ends = await askReader.ends(topic)
    for (const [partition, start] of starts) {
      this.#positions.set(partition, start)
      void this.#follow(partition)
    }
    // As long as it takes: nothing can start before.
    for (;;) {
      try {
        return await this.#reach(ends)
      } catch (error) {
        if (this.#stopped || this.#refused !== null) throw this.#refused ?? error
      }
    }
  }

  /** Callers within one look-up share it; a call during a look-up waits for the next, since that one may have been too early. */
  freshen(maxAgeMs = 0): Promise<void> {
    const now = this.#deps.clock.mono()
    if (now - this.#freshMs >= maxAgeMs) return this.#ask()
    // Ahead of need: at a steady pace nobody waits for an answer.
    if (now - this.#askedMs >= maxAgeMs / 2) this.#ask().catch(() => undefined)
    return fresh
  }

  #ask(): Promise<void> {
    // Deferred by a microtask so that a batch's callers share one request that is certainly later than each of them.
    this.#asking ??= Promise.resolve().then(async () => {
      this.#asking = null
      const { askReader, topic, clock } = this.#deps
      const askedMs = clock.mono()
      this.#askedMs = askedMs
      await this.#reach(await askReader.ends(topic))
      this.#freshMs = Math.max(this.#freshMs, askedMs)
    })
    return this.#asking
  }

  stop(): void {
    this.#stopped = true
    for (const resolve of this.#stopWaiters.splice(0)) resolve()
    const stopped = new HooktideError('consumer.failed', `the table of ${this.#deps.topic} is closed`)
    for (const { reject } of this.#waiters.splice(0)) reject(stopped)
  }

  /** Nothing but another ACL will help: a start that waits for the table must not wait for ever. */
  #refuse(error: HooktideError): void {
    this.#refused = error
    for (const { reject } of this.#waiters.splice(0)) reject(error)
  }

  #reach(ends: ReadonlyMap<number, number>): Promise<void> {
    if (this.#has(ends)) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const waiter = { ends, resolve, reject }
      this.#waiters.push(waiter)
      this.#deps.clock.after(patienceMs, () => {
        const i = this.#waiters.indexOf(waiter)
        if (i < 0) return
        this.#waiters.splice(i, 1)
        reject(
          new HooktideError('broker.timeout', `${this.#deps.topic} could not be read to its end in ${patienceMs} ms`),
        )
      })
    })
  }

  #has(ends: ReadonlyMap<number, number>): boolean {
    for (const [partition, end] of ends) if ((this.#positions.get(partition) ?? 0) < end) return false
    return true
  }

  async #follow(partition: number): Promise<void> {
    const { topic, followReader, observer, clock } = this.#deps
    let failures = 0
    while (!this.#stopped) {
      const from = this.#positions.get(partition) ?? 0
      try {
        const batch = await followReader.fetch({ topic, partition, from, maxBytes: 1 << 20, maxWaitMs: 100 })
        if (this.#stopped) return
        failures = 0
        this.#refused = null
        for (const record of batch.records) this.#deps.apply(record, partition)
        this.#positions.set(partition, batch.nextOffset)
        if (this.#waiters.length > 0) this.#wake()
      } catch (error) {
        if (this.#stopped) return
        if (error instanceof HooktideError && error.code === 'broker.unauthorized') this.#refuse(error)
        if (failures++ === 0) observer.log('warn', 'table.read_failed', { topic, partition, error: messageOf(error) })
        await new Promise<void>((resolve) => {
          this.#stopWaiters.push(resolve)
          clock.after(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)), resolve)
        })
        this.#stopWaiters = []
      }
    }
  }

  #wake(): void {
    const left = []
    for (const waiter of this.#waiters) {
      if (this.#has(waiter.ends)) waiter.resolve()
      else left.push(waiter)
    }
    this.#waiters = left
  }
}

const fresh = Promise.resolve()

/** Longest wait to be as new as the topic. */
const patienceMs = 30_000
