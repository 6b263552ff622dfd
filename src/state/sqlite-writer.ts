import type { StatementSync } from 'node:sqlite'
import { eraseRows } from './erase.ts'
import { flatAttempt, flatHealth, healthRow } from './flat-attempt.ts'
import { deliveryRow, flatDelivery, statusNumber } from './flat-delivery.ts'
import { forgetRows } from './forget.ts'
import type { SqliteDatabase, SqlValue } from './sqlite-database.ts'
import {
  attemptColumns,
  deliveryColumns,
  type FlatDelivery,
  type FlatHealth,
  healthColumns,
  sendingColumns,
} from './tables.ts'
import type { Erased, LogStarts, RowChange, StateChange, StateWriter, StoredRow } from './writer.ts'

/** Writes the state into SQLite, by prepared statements: they are run once per row, so each is made once. */
export class SqliteWriter implements StateWriter {
  readonly #database: SqliteDatabase
  readonly #made = new Map<string, StatementSync>()
  #epoch = ''

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  async positions() {
    this.#epoch = this.#currentEpoch()
    const rows = this.#all('select topic, part, folded, log_end, log_end_ms from positions')
    return rows.map((row) => ({
      topic: row.topic as string,
      partition: row.part as number,
      folded: row.folded as number,
      logEnd: row.log_end as number,
      logEndAtMs: row.log_end_ms as number,
    }))
  }

  async nextNo(): Promise<number> {
    const [row] = this.#all('select coalesce(max(no), 0) + 1 as n from deliveries')
    return row?.n as number
  }

  async rows(ids: readonly string[]): Promise<ReadonlyMap<string, StoredRow>> {
    const found = new Map<string, StoredRow>()
    const select = this.#statement(`select ${deliveryColumns.join()} from deliveries where id = ?`)
    for (const id of ids) {
      const flat = select.get(id) as FlatDelivery | undefined
      if (flat !== undefined) found.set(id, { no: flat.no, row: deliveryRow(flat) })
    }
    return found
  }

  async health(keys: readonly { readonly subscriptionId: string; readonly lane: number }[]) {
    const select = `select ${healthColumns.join()} from health where subscription = ? and lane = ?`
    return keys.flatMap(({ subscriptionId, lane }) =>
      this.#all(select, subscriptionId, lane).map((flat) => healthRow(flat as unknown as FlatHealth)),
    )
  }

  async commit(change: StateChange): Promise<'done' | 'stale'> {
    return this.#transaction(() => {
      if (!this.#isCurrent(change)) return 'stale'
      this.#write(change)
      return 'done'
    })
  }

  #currentEpoch(): string {
    return (this.#statement("select value from meta where key = 'epoch'").get()?.value as string | undefined) ?? ''
  }

  #isCurrent({ positions }: StateChange): boolean {
    if (this.#currentEpoch() !== this.#epoch) return false
    const folded = this.#statement('select folded from positions where topic = ? and part = ?')
    return positions.every(({ topic, partition, from }) => {
      const row = folded.get(topic, partition)
      return ((row?.folded as number | undefined) ?? 0) === from
    })
  }

  #write(change: StateChange): void {
    for (const row of change.rows) this.#row(row)
    const attempt = this.#statement(insertAttempt)
    for (const one of change.attempts) attempt.run(...(Object.values(flatAttempt(one)) as SqlValue[]))
    const health = this.#statement(insertHealth)
    for (const row of change.health) health.run(...(Object.values(flatHealth(row)) as SqlValue[]))
    this.#counts(change.counts)
    for (const { key, kind, value, partition, offset } of change.orders) {
      if (value === null) this.#run('delete from orders where key = ?', key)
      else this.#run('insert or replace into orders values (?, ?, ?, ?, ?)', key, kind, value, partition, offset)
    }
    for (const { topic, partition, folded, logEnd, logEndAtMs } of change.positions) {
      this.#run('insert or replace into positions values (?, ?, ?, ?, ?)', topic, partition, folded, logEnd, logEndAtMs)
    }
  }

  #row({ no, row, before }: RowChange): void {
    const flat = flatDelivery(no, row)
    if (before === null) {
      this.#statement(insertDelivery).run(...(Object.values(flat) as SqlValue[]))
      return
    }
    // Naming a column makes SQLite write its indexes anew, so what a delivery is is only written when it changed.
    const [columns, text] = sameIdentity(before, row) ? updateSending : updateAll
    this.#run(text, ...columns.map((column) => flat[column]), no)
  }

  #counts(counts: StateChange['counts']): void {
    for (const { tenant, subscriptionId, status, by } of counts) {
      if (by === 0) continue
      this.#run(
        'insert into counts (tenant, subscription, status, n) values (?, ?, ?, ?) on conflict do update set n = n + excluded.n',
        tenant,
        subscriptionId,
        statusNumber(status),
        by,
      )
    }
    this.#run('delete from counts where n = 0')
  }

  async forget(starts: LogStarts, limit: number): Promise<number> {
    return forgetRows(this.#database.db, starts, limit)
  }

  async erase(what: Erased): Promise<number> {
    return eraseRows(this.#database.db, what)
  }

  async close(): Promise<void> {
    this.#made.clear()
    this.#database.raw.close()
  }

  #transaction<T>(run: () => T): T {
    const { raw } = this.#database
    raw.exec('begin immediate')
    try {
      const result = run()
      raw.exec('commit')
      return result
    } catch (error) {
      if (raw.isTransaction) raw.exec('rollback')
      throw error
    }
  }

  #statement(text: string): StatementSync {
    let statement = this.#made.get(text)
    if (statement === undefined) {
      statement = this.#database.raw.prepare(text)
      this.#made.set(text, statement)
    }
    return statement
  }

  #all(text: string, ...values: SqlValue[]): Record<string, unknown>[] {
    return this.#statement(text).all(...values) as Record<string, unknown>[]
  }

  #run(text: string, ...values: SqlValue[]): number | bigint {
    return this.#statement(text).run(...values).changes
  }
}

/** The flat rows have their properties in the order of the columns: a test holds them to it. */
const insertDelivery = insertInto('deliveries', deliveryColumns, 'insert')
const insertAttempt = insertInto('attempts', attemptColumns, 'insert or replace')
const insertHealth = insertInto('health', healthColumns, 'insert or replace')
const updateSending = update(sendingColumns)
const updateAll = update(deliveryColumns.filter((column) => column !== 'no' && column !== 'id'))

function insertInto(table: string, columns: readonly string[], verb: string): string {
  return `${verb} into ${table} (${columns.join()}) values (${columns.map(() => '?').join()})`
}

function update<C extends keyof FlatDelivery>(columns: readonly C[]): readonly [readonly C[], string] {
  return [columns, `update deliveries set ${columns.map((column) => `${column} = ?`).join()} where no = ?`]
}

function sameIdentity(a: RowChange['row'], b: RowChange['row']): boolean {
  return a.created.ms === b.created.ms && a.created.from === b.created.from && a.event === b.event && sameNames(a, b)
}

function sameNames(a: RowChange['row'], b: RowChange['row']): boolean {
  return (
    a.tenant === b.tenant &&
    a.subscriptionId === b.subscriptionId &&
    a.eventId === b.eventId &&
    a.eventType === b.eventType
  )
}
