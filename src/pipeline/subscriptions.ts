import { MatchIndex } from '../core/match-index.ts'
import type { InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Observer } from '../ports.ts'
import { Table, type TableDeps } from './table.ts'

export interface SubscriptionsDeps extends Omit<TableDeps, 'apply'> {
  readonly observer: Observer
  decode(record: Pick<InRecord, 'key' | 'value'>): Result<Subscription>
}

/** The table of subscriptions, in memory, as new as its topic. */
export class Subscriptions {
  readonly #index = new MatchIndex()
  readonly #table: Table
  readonly #listeners = new Set<(id: string) => void>()
  readonly #deps: SubscriptionsDeps

  constructor(deps: SubscriptionsDeps) {
    this.#deps = deps
    this.#table = new Table({ ...deps, apply: (record) => this.#apply(record) })
  }

  load(): Promise<void> {
    return this.#table.load()
  }

  freshen(): Promise<void> {
    return this.#table.freshen()
  }

  get(id: string): Subscription | undefined {
    return this.#index.get(id)
  }

  match(tenant: string, type: string): readonly Subscription[] {
    return this.#index.match(tenant, type)
  }

  all(): Iterable<Subscription> {
    return this.#index.all()
  }

  get size(): number {
    return this.#index.size
  }

  onChange(listener: (id: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  stop(): void {
    this.#table.stop()
  }

  #apply(record: InRecord): void {
    const id = record.key?.toString()
    if (id === undefined) {
      this.#deps.observer.log('error', 'subscription.unreadable', {
        offset: record.offset,
        reason: 'the record has no key: the key must be the subscription id',
      })
      return
    }
    if (record.value === null) this.#index.remove(id)
    else {
      const decoded = this.#deps.decode(record)
      if (!decoded.ok) {
        // The last good version stays in force: a broken update must not stop an endpoint's deliveries.
        this.#deps.observer.log('error', 'subscription.unreadable', {
          subscriptionId: id,
          offset: record.offset,
          reason: decoded.reason,
        })
        this.#deps.observer.count('subscriptions_unreadable')
        return
      }
      this.#index.set(decoded.value)
    }
    for (const listener of this.#listeners) listener(id)
  }
}
