import type { Attempt } from '../core/attempt.ts'
import { type Control, controlKey } from '../core/control.ts'
import type { FetchedBatch, InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import { attemptFact, type Fact, placeFact, type StatePlace } from '../core/state-fact.ts'
import { foldHealth, type HealthRow } from '../core/state-health.ts'
import { currentSending, type DeliveryRow, foldFact } from '../core/state-row.ts'
import type { Observer } from '../ports.ts'
import type {
  AttemptChange,
  CountChange,
  OrderChange,
  PositionChange,
  StateChange,
  StateWriter,
  StoredRow,
} from './writer.ts'

export type SourceKind = StatePlace | 'attempts' | 'control'

export interface Decoders {
  attempt(record: InRecord): Result<Attempt>
  control(record: InRecord): Result<Control>
}

/** What was read of one partition in one go, with what is known of its end. */
export interface FoldInput {
  readonly kind: SourceKind
  readonly batch: FetchedBatch
  /** Where the reading began. */
  readonly from: number
  readonly atMs: number
}

interface Held {
  readonly no: number
  row: DeliveryRow
  /** As the store has it; null: not yet there. */
  stored: DeliveryRow | null
}

/**
 * Folds batches of the log into a store: reads the rows that a batch is about, works out the new ones, writes them in one
 * transaction with the positions. Rows it has just written are remembered: a delivery and its attempts follow each other closely.
 */
export class Fold {
  readonly #writer: StateWriter
  readonly #decoders: Decoders
  readonly #observer: Observer
  readonly #remember: number
  /** In the order of last use. */
  readonly #rows = new Map<string, Held>()
  readonly #health = new Map<string, HealthRow>()
  #no = 0

  constructor(writer: StateWriter, options: { decoders: Decoders; observer: Observer; remember?: number }) {
    this.#writer = writer
    this.#decoders = options.decoders
    this.#observer = options.observer
    this.#remember = options.remember ?? 20_000
  }

  /** `stale`: another fold is at work, or the database was exchanged: read the positions again and go on from there. */
  async apply(inputs: readonly FoldInput[]): Promise<'done' | 'stale'> {
    const facts: Fact[] = []
    const attempts: { fact: Fact | null; lane: number; record: InRecord; attempt: Attempt }[] = []
    const orders = new Map<string, OrderChange>()
    for (const input of inputs) this.#read(input, facts, attempts, orders)
    await this.#load(facts, attempts)
    const changed = new Map<string, Held>()
    for (const fact of facts) {
      const held = this.#hold(fact)
      if (held.row !== held.stored) changed.set(fact.id, held)
    }
    const attemptRows: AttemptChange[] = []
    const health = new Map<string, HealthRow>()
    for (const { fact, lane, record, attempt } of attempts) {
      const held = this.#rows.get(attempt.deliveryId)
      if (fact === null || held === undefined) continue
      attemptRows.push({ lane, offset: record.offset, loggedMs: record.timestampMs, delivery: held.no, attempt })
      const key = healthKey(attempt.subscriptionId, lane)
      const row = foldHealth(this.#health.get(key) ?? null, lane, record.offset, attempt)
      if (row === null) continue
      this.#health.set(key, row)
      health.set(key, row)
    }
    const rows = [...changed.values()].map(({ no, row, stored: before }) => ({ no, row, before }))
    const change: StateChange = {
      rows,
      attempts: attemptRows,
      health: [...health.values()],
      counts: countChanges(rows),
      orders: [...orders.values()],
      positions: positionsOf(inputs),
    }
    let answer: 'done' | 'stale' = 'stale'
    try {
      answer = await this.#writer.commit(change)
    } finally {
      // What it holds is ahead of the store then.
      if (answer === 'stale') this.reset()
    }
    if (answer === 'stale') return answer
    for (const held of changed.values()) held.stored = held.row
    this.#forgetOldest()
    return answer
  }

  /** Forgets what it remembers: the store is another one now, or was changed by others. */
  reset(): void {
    this.#rows.clear()
    this.#health.clear()
    this.#no = 0
  }

  #read(
    { kind, batch }: FoldInput,
    facts: Fact[],
    attempts: { fact: Fact | null; lane: number; record: InRecord; attempt: Attempt }[],
    orders: Map<string, OrderChange>,
  ): void {
    for (const record of batch.records) {
      if (kind === 'control') {
        const order = this.#order(batch, record)
        if (order !== null) orders.set(order.key, order)
      } else if (kind === 'attempts') {
        const decoded = this.#decoders.attempt(record)
        if (!decoded.ok) this.#unreadable(batch, record, decoded.reason)
        else {
          const fact = attemptFact(batch, record, decoded.value)
          if (fact !== null) facts.push(fact)
          attempts.push({ fact, lane: batch.partition, record, attempt: decoded.value })
        }
      } else {
        const decoded = placeFact(kind, batch, record)
        if (decoded.ok) facts.push(decoded.value)
        else this.#unreadable(batch, record, decoded.reason)
      }
    }
  }

  #order({ topic, partition }: FetchedBatch, record: InRecord): OrderChange | null {
    const { offset, key, value } = record
    if (key === null) return null
    if (value === null) return { topic, partition, offset, key: key.toString(), kind: '', value: null }
    const decoded = this.#decoders.control(record)
    if (!decoded.ok) {
      this.#unreadable({ topic, partition }, record, decoded.reason)
      return null
    }
    const { kind } = decoded.value
    return { topic, partition, offset, key: controlKey(decoded.value), kind, value: JSON.stringify(decoded.value) }
  }

  async #load(facts: readonly Fact[], attempts: readonly { lane: number; attempt: Attempt }[]): Promise<void> {
    if (this.#no === 0) this.#no = await this.#writer.nextNo()
    const missing = new Set<string>()
    for (const { id } of facts) if (!this.#rows.has(id)) missing.add(id)
    if (missing.size > 0) {
      const stored: ReadonlyMap<string, StoredRow> = await this.#writer.rows([...missing])
      for (const [id, { no, row }] of stored) this.#rows.set(id, { no, row, stored: row })
    }
    const keys = new Map<string, { subscriptionId: string; lane: number }>()
    for (const { lane, attempt } of attempts) {
      const key = healthKey(attempt.subscriptionId, lane)
      if (!this.#health.has(key)) keys.set(key, { subscriptionId: attempt.subscriptionId, lane })
    }
    if (keys.size === 0) return
    for (const row of await this.#writer.health([...keys.values()])) {
      this.#health.set(healthKey(row.subscriptionId, row.lane), row)
    }
  }

  #hold(fact: Fact): Held {
    const held = this.#rows.get(fact.id)
    if (held === undefined) {
      const first = { no: this.#no++, row: foldFact(null, fact), stored: null }
      this.#rows.set(fact.id, first)
      return first
    }
    held.row = foldFact(held.row, fact)
    // To the end of the order: used last.
    this.#rows.delete(fact.id)
    this.#rows.set(fact.id, held)
    return held
  }

  #forgetOldest(): void {
    for (const id of this.#rows.keys()) {
      if (this.#rows.size <= this.#remember) break
      this.#rows.delete(id)
    }
    if (this.#health.size > this.#remember) this.#health.clear()
  }

  #unreadable(at: { topic: string; partition: number }, { offset }: InRecord, reason: string): void {
    const { topic, partition } = at
    this.#observer.log('warn', 'projector.unreadable', { topic, partition, offset, reason })
    this.#observer.count('state_unreadable')
  }
}

function healthKey(subscriptionId: string, lane: number): string {
  return `${lane} ${subscriptionId}`
}

function countChanges(
  rows: readonly { readonly row: DeliveryRow; readonly before: DeliveryRow | null }[],
): CountChange[] {
  const changes = new Map<string, { -readonly [K in keyof CountChange]: CountChange[K] }>()
  const add = (row: DeliveryRow, by: number) => {
    const { tenant, subscriptionId } = row
    const { status } = currentSending(row)
    const key = `${status} ${subscriptionId} ${tenant}`
    const change = changes.get(key)
    if (change === undefined) changes.set(key, { tenant, subscriptionId, status, by })
    else change.by += by
  }
  for (const { row, before } of rows) {
    if (before !== null) add(before, -1)
    add(row, 1)
  }
  return [...changes.values()].filter(({ by }) => by !== 0)
}

/** Inputs of one partition must follow each other. */
function positionsOf(inputs: readonly FoldInput[]): PositionChange[] {
  const positions = new Map<string, PositionChange>()
  for (const { batch, from, atMs } of inputs) {
    const { topic, partition, nextOffset, highWatermark } = batch
    const key = `${topic}/${partition}`
    const first = positions.get(key)?.from ?? from
    positions.set(key, {
      topic,
      partition,
      from: first,
      folded: nextOffset,
      logEnd: Math.max(nextOffset, highWatermark),
      logEndAtMs: atMs,
    })
  }
  return [...positions.values()]
}
