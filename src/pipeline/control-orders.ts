import type { Control } from '../core/control.ts'
import { JobTable } from '../core/job-table.ts'
import { ended, Orders } from '../core/orders.ts'
import type { InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import { Table, type TableDeps } from './table.ts'

export interface ControlOrdersDeps extends Omit<TableDeps, 'apply'> {
  decode(record: Pick<InRecord, 'key' | 'value'>): Result<Control>
  /** An order for this target was given, changed, taken back, or has ended. */
  changed(kind: string, target: string): void
}

/** The operators' orders in force, as new as the `control` topic and the clock. */
export class ControlOrders {
  readonly orders = new Orders()
  readonly jobs = new JobTable()
  readonly #deps: ControlOrdersDeps
  readonly #table: Table
  readonly #jobListeners = new Set<(id: string) => void>()
  /** Of the orders that end by themselves: what they hold back is woken by nothing else. */
  readonly #endings = new Map<string, () => void>()

  constructor(deps: ControlOrdersDeps) {
    this.#deps = deps
    this.#table = new Table({ ...deps, apply: (record) => this.#apply(record) })
  }

  load(): Promise<void> {
    return this.#table.load()
  }

  freshen(): Promise<void> {
    return this.#table.freshen()
  }

  onJob(listener: (id: string) => void): () => void {
    this.#jobListeners.add(listener)
    return () => this.#jobListeners.delete(listener)
  }

  stop(): void {
    this.#table.stop()
    for (const cancel of this.#endings.values()) cancel()
    this.#endings.clear()
  }

  #apply(record: InRecord): void {
    const { clock, observer } = this.#deps
    const key = record.key?.toString() ?? ''
    const decoded = record.value === null ? null : this.#deps.decode(record)
    if (decoded?.ok === false) {
      observer.log('error', 'control.unreadable', { key, offset: record.offset, reason: decoded.reason })
      return
    }
    const order = decoded?.value ?? null
    if (key.startsWith('job:')) {
      this.#applyJob(key, order, record.offset)
      return
    }
    this.#endings.get(key)?.()
    this.#endings.delete(key)
    const over = order !== null && ended(order, clock.now())
    if (!this.orders.apply(key, over ? null : order)) return
    observer.log('info', 'control.applied', { target: key, order: order?.order ?? 'none', by: order?.by })
    if (order?.untilMs !== undefined && !over) this.#await(key, order.untilMs)
    this.#changed(key)
  }

  #applyJob(key: string, order: Control | null, offset: number): void {
    const applied = this.jobs.apply(key, order)
    if (!applied.ok) {
      this.#deps.observer.log('error', 'control.unreadable', { key, offset, reason: applied.reason })
      return
    }
    const id = key.slice('job:'.length).split('/')[0] as string
    for (const listener of this.#jobListeners) listener(id)
  }

  /** In steps: the wall clock may be set, and timers have an upper bound. */
  #await(key: string, untilMs: number): void {
    const { clock, observer } = this.#deps
    const leftMs = Math.min(Math.max(0, untilMs - clock.now()), longestStepMs)
    const cancel = clock.after(leftMs, () => {
      if (clock.now() < untilMs) {
        this.#await(key, untilMs)
        return
      }
      this.#endings.delete(key)
      this.orders.apply(key, null)
      observer.log('info', 'control.ended', { target: key })
      this.#changed(key)
    })
    this.#endings.set(key, cancel)
  }

  #changed(key: string): void {
    const split = key.indexOf(':')
    this.#deps.changed(key.slice(0, split), key.slice(split + 1))
  }
}

const longestStepMs = 60_000
