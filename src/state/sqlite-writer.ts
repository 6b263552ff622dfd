import { eraseRows } from './erase.ts'
import { healthRow } from './flat-attempt.ts'
import { deliveryRow } from './flat-delivery.ts'
import { forgetRows } from './forget.ts'
import { runBatch, sqliteBatch } from './sqlite-batch.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import { Statements } from './sqlite-file.ts'
import { type HealthKey, readDeliveries, readHealth } from './sqlite-reads.ts'
import type { Erased, LogStarts, StateChange, StateWriter, StoredRow } from './writer.ts'

/** Writes the live state into SQLite, in this thread: its batches are small. */
export class SqliteWriter implements StateWriter {
  readonly #db: SqliteDatabase['db']
  readonly #statements: Statements
  #epoch = ''

  constructor({ db, raw }: SqliteDatabase) {
    this.#db = db
    this.#statements = new Statements(raw)
  }

  async positions() {
    this.#epoch = this.#currentEpoch()
    const rows = this.#statements.all('select topic, part, folded, log_end, log_end_ms from positions')
    return rows.map((row) => ({
      topic: row.topic as string,
      partition: row.part as number,
      folded: row.folded as number,
      logEnd: row.log_end as number,
      logEndAtMs: row.log_end_ms as number,
    }))
  }

  async nextNo(): Promise<number> {
    const [row] = this.#statements.all('select coalesce(max(no), 0) + 1 as n from deliveries')
    return row?.n as number
  }

  async rows(ids: readonly string[]): Promise<ReadonlyMap<string, StoredRow>> {
    const flats = readDeliveries(this.#statements, ids)
    return new Map(flats.map((flat) => [flat.id, { no: flat.no, row: deliveryRow(flat) }]))
  }

  async health(keys: readonly HealthKey[]) {
    return readHealth(this.#statements, keys).map(healthRow)
  }

  async commit(change: StateChange): Promise<'done' | 'stale'> {
    return this.#statements.transaction(() => {
      if (!this.#isCurrent(change)) return 'stale'
      runBatch(this.#statements, sqliteBatch(change))
      return 'done'
    })
  }

  #currentEpoch(): string {
    const row = this.#statements.of("select value from meta where key = 'epoch'").get()
    return (row?.value as string | undefined) ?? ''
  }

  #isCurrent({ positions }: StateChange): boolean {
    if (this.#currentEpoch() !== this.#epoch) return false
    const folded = this.#statements.of('select folded from positions where topic = ? and part = ?')
    return positions.every(({ topic, partition, from }) => {
      const row = folded.get(topic, partition)
      return ((row?.folded as number | undefined) ?? 0) === from
    })
  }

  async forget(starts: LogStarts, limit: number): Promise<number> {
    return forgetRows(this.#db, starts, limit)
  }

  async erase(what: Erased): Promise<number> {
    return eraseRows(this.#db, what)
  }

  async close(): Promise<void> {
    this.#statements.close()
  }
}
