import type { Event } from '../core/event.ts'
import { EventFacts } from '../core/event-facts.ts'
import { evaluate } from '../core/filter.ts'
import { MatchIndex } from '../core/match-index.ts'
import type { InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import { filterOf } from '../core/subscription-content.ts'
import type { Observer } from '../ports.ts'
import { Table, type TableDeps } from './table.ts'

export interface SubscriptionsDeps extends Omit<TableDeps, 'apply'> {
  readonly observer: Observer
  /** What the types of operational events begin with; null: there are none. */
  readonly reserved: string | null
  decode(record: Pick<InRecord, 'key' | 'value'>): Result<Subscription>
}

/** The table of subscriptions, in memory, as new as its topic. */
export class Subscriptions {
  readonly #index: MatchIndex
  readonly #table: Table
  readonly #listeners = new Set<(id: string) => void>()
  readonly #deps: SubscriptionsDeps
  #version = 0

  constructor(deps: SubscriptionsDeps) {
    this.#deps = deps
    this.#index = new MatchIndex(deps.reserved)
    this.#table = new Table({ ...deps, apply: (record) => this.#apply(record) })
  }

  load(): Promise<void> {
    return this.#table.load()
  }

  /** See `Table.freshen`. */
  freshen(maxAgeMs = 0): Promise<void> {
    return this.#table.freshen(maxAgeMs)
  }

  get(id: string): Subscription | undefined {
    return this.#index.get(id)
  }

  match(tenant: string, type: string): readonly Subscription[] {
    return this.#index.match(tenant, type)
  }

  /** Who wants this event, filters included, sorted by id. Its body is parsed once, and only if one of them looks into it. */
  wanting(event: Event): readonly Subscription[] {
    const candidates = this.#index.match(event.tenant, event.type)
    if (candidates.every(({ filter }) => filter === undefined)) return candidates
    const facts = new EventFacts({ ...event, key: event.orderingKey }, event.body)
    return candidates.filter((subscription) => {
      const filter = filterOf(subscription)
      if (filter === null) return true
      // A claimed body is not fetched to be looked into.
      const passed = event.claim !== undefined && filter.needsBody ? 'undecided' : evaluate(filter, facts)
      // One event too many can be thrown away by its receiver; one too few is lost.
      if (passed === 'undecided') this.#deps.observer.count('filters_undecided')
      else if (!passed) this.#deps.observer.count('filtered_out')
      return passed !== false
    })
  }

  /**
   * This process treats it as disabled from now on, until another record of it is read. False: it is disabled already, gone,
   * or its URL was changed meanwhile, so what is said of it holds no more.
   */
  disable(found: Subscription, reason: string): boolean {
    const now = this.#index.get(found.id)
    if (now === undefined || now.status === 'disabled' || now.url !== found.url) return false
    this.#index.set({ ...now, status: 'disabled', statusReason: reason })
    for (const listener of this.#listeners) listener(found.id)
    return true
  }

  all(): Iterable<Subscription> {
    return this.#index.all()
  }

  /** Rises with every record of the table. */
  get version(): number {
    return this.#version
  }

  /** What the types of operational events begin with; null: there are none. */
  get reserved(): string | null {
    return this.#deps.reserved
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
    this.#version++
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
        if (this.#index.get(id) !== undefined) return
        this.#index.set(standIn(id))
        for (const listener of this.#listeners) listener(id)
        return
      }
      this.#index.set(decoded.value)
    }
    for (const listener of this.#listeners) listener(id)
  }
}

/**
 * For a record that can't be read (of a newer version, say) and has no readable one before it: what waits for the
 * subscription must not be taken for a deleted one's and cancelled. It waits; nothing matches meanwhile.
 */
function standIn(id: string): Subscription {
  return {
    v: 1,
    id,
    tenant: '',
    url: '',
    types: [],
    ordering: 'key',
    status: 'paused',
    statusReason: 'its record can not be read',
    secrets: [],
    createdAtMs: 0,
    updatedAtMs: 0,
  }
}
