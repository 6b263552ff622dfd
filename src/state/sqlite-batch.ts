import { flatAttempt, flatHealth } from './flat-attempt.ts'
import { flatDelivery, statusNumber } from './flat-delivery.ts'
import type { SqlValue, Statements } from './sqlite-file.ts'
import { attemptColumns, deliveryColumns, type FlatDelivery, healthColumns, sendingColumns } from './tables.ts'
import type { RowChange, StateChange } from './writer.ts'

/** One statement for many rows, their values one after the other: little to hand to another thread. Stands for itself as JSON. */
export interface BatchRun {
  readonly text: string
  readonly width: number
  readonly values: SqlValue[]
}

/** What a change means to SQLite. Each row is named by one run at most, so their order is nobody's. */
export function sqliteBatch(change: StateChange): readonly BatchRun[] {
  const inserted = run(insertDelivery, deliveryColumns.length)
  const sent = run(updateSending[1], updateSending[0].length + 1)
  const changed = run(updateAll[1], updateAll[0].length + 1)
  for (const { no, row, before } of change.rows) {
    const flat = flatDelivery(no, row)
    if (before === null) push(inserted, flat)
    // Naming a column makes SQLite write its indexes anew, so what a delivery is is only written when it changed.
    else if (sameIdentity(before, row)) sent.values.push(...updateSending[0].map((column) => flat[column]), no)
    else changed.values.push(...updateAll[0].map((column) => flat[column]), no)
  }
  const attempts = run(insertAttempt, attemptColumns.length)
  for (const one of change.attempts) push(attempts, flatAttempt(one))
  const health = run(insertHealth, healthColumns.length)
  for (const row of change.health) push(health, flatHealth(row))
  const counts = run(addCount, 4)
  for (const { tenant, subscriptionId, status, by } of change.counts) {
    if (by !== 0) counts.values.push(tenant, subscriptionId, statusNumber(status), by)
  }
  const orders = run('insert or replace into orders values (?, ?, ?, ?, ?)', 5)
  const revoked = run('delete from orders where key = ?', 1)
  for (const { key, kind, value, partition, offset } of change.orders) {
    if (value === null) revoked.values.push(key)
    else orders.values.push(key, kind, value, partition, offset)
  }
  const positions = run('insert or replace into positions values (?, ?, ?, ?, ?)', 5)
  for (const { topic, partition, folded, logEnd, logEndAtMs } of change.positions) {
    positions.values.push(topic, partition, folded, logEnd, logEndAtMs)
  }
  return [inserted, sent, changed, attempts, health, counts, orders, revoked, positions]
}

/** Within a transaction. */
export function runBatch(statements: Statements, runs: readonly BatchRun[]): void {
  for (const { text, width, values } of runs) {
    if (values.length === 0) continue
    const statement = statements.of(text)
    for (let at = 0; at < values.length; at += width) statement.run(...values.slice(at, at + width))
  }
  statements.of('delete from counts where n = 0').run()
}

function run(text: string, width: number): BatchRun {
  return { text, width, values: [] }
}

/** The flat rows have their properties in the order of the columns: a test holds them to it. */
function push({ values }: BatchRun, flat: object): void {
  for (const value of Object.values(flat)) values.push(value as SqlValue)
}

const insertDelivery = insertInto('deliveries', deliveryColumns, 'insert')
const insertAttempt = insertInto('attempts', attemptColumns, 'insert or replace')
const insertHealth = insertInto('health', healthColumns, 'insert or replace')
const updateSending = update(sendingColumns)
const updateAll = update(deliveryColumns.filter((column) => column !== 'no' && column !== 'id'))
const addCount =
  'insert into counts (tenant, subscription, status, n) values (?, ?, ?, ?) on conflict do update set n = n + excluded.n'

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
