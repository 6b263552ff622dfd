import { type Kysely, sql, type Transaction } from 'kysely'
import { eraseRows } from './erase.ts'
import { flatAttempt, flatHealth, healthRow } from './flat-attempt.ts'
import { deliveryRow, flatDelivery, statusNumber } from './flat-delivery.ts'
import { forgetRows } from './forget.ts'
import { deliveryColumns, healthColumns, type StateTables } from './tables.ts'
import type { Erased, LogStarts, StateChange, StateWriter, StoredRow } from './writer.ts'

type Trx = Transaction<StateTables>

/** Writes the state into Postgres, many rows to a statement. One writer at a time: the others wait for its transaction, then find theirs stale. */
export class PostgresWriter implements StateWriter {
  readonly #db: Kysely<StateTables>
  #epoch = ''

  constructor(db: Kysely<StateTables>) {
    this.#db = db
  }

  async positions() {
    this.#epoch = await epochOf(this.#db)
    const rows = await this.#db.selectFrom('positions').selectAll().execute()
    return rows.map(({ topic, part, folded, log_end, log_end_ms }) => {
      return { topic, partition: part, folded, logEnd: log_end, logEndAtMs: log_end_ms }
    })
  }

  async nextNo(): Promise<number> {
    const { n } = await this.#db
      .selectFrom('deliveries')
      .select(({ fn }) => fn.max('no').as('n'))
      .executeTakeFirstOrThrow()
    return (n ?? 0) + 1
  }

  async rows(ids: readonly string[]): Promise<ReadonlyMap<string, StoredRow>> {
    const found = new Map<string, StoredRow>()
    const flats = await this.#db
      .selectFrom('deliveries')
      .selectAll()
      .where(sql<boolean>`id = any(${ids.map(clean)}::text[])`)
      .execute()
    for (const flat of flats) found.set(flat.id, { no: flat.no, row: deliveryRow(flat) })
    return found
  }

  async health(keys: readonly { readonly subscriptionId: string; readonly lane: number }[]) {
    const wanted = new Set(keys.map(({ subscriptionId, lane }) => `${lane} ${subscriptionId}`))
    const rows = await this.#db
      .selectFrom('health')
      .selectAll()
      .where(sql<boolean>`subscription = any(${[...new Set(keys.map((key) => key.subscriptionId))]}::text[])`)
      .execute()
    return rows.map(healthRow).filter(({ subscriptionId, lane }) => wanted.has(`${lane} ${subscriptionId}`))
  }

  async commit(change: StateChange): Promise<'done' | 'stale'> {
    return await this.#db.transaction().execute(async (trx) => {
      await sql`select pg_advisory_xact_lock(hashtext('hooktide'), hashtext(current_schema()))`.execute(trx)
      if ((await epochOf(trx)) !== this.#epoch || !(await isCurrent(trx, change))) return 'stale'
      await write(trx, change)
      return 'done'
    })
  }

  async forget(starts: LogStarts, limit: number): Promise<number> {
    return await forgetRows(this.#db, starts, limit)
  }

  async erase(what: Erased): Promise<number> {
    return await eraseRows(this.#db, what)
  }

  async close(): Promise<void> {
    await this.#db.destroy()
  }
}

async function epochOf(db: Kysely<StateTables>): Promise<string> {
  const row = await db.selectFrom('meta').select('value').where('key', '=', 'epoch').executeTakeFirst()
  return row?.value ?? ''
}

async function isCurrent(trx: Trx, { positions }: StateChange): Promise<boolean> {
  const rows = await trx.selectFrom('positions').select(['topic', 'part', 'folded']).execute()
  const folded = new Map(rows.map(({ topic, part, folded }) => [`${topic}/${part}`, folded]))
  return positions.every(({ topic, partition, from }) => (folded.get(`${topic}/${partition}`) ?? 0) === from)
}

async function write(trx: Trx, change: StateChange): Promise<void> {
  for (const chunk of chunks(change.rows)) {
    await trx
      .insertInto('deliveries')
      .values(chunk.map(({ no, row }) => cleaned(flatDelivery(no, row))))
      .onConflict((oc) => oc.column('no').doUpdateSet(excluded(deliveryColumns)))
      .execute()
  }
  for (const chunk of chunks(change.attempts)) {
    await trx
      .insertInto('attempts')
      .values(chunk.map((one) => cleaned(flatAttempt(one))))
      .onConflict((oc) => oc.columns(['lane', 'off']).doNothing())
      .execute()
  }
  for (const chunk of chunks(change.health)) {
    await trx
      .insertInto('health')
      .values(chunk.map((row) => cleaned(flatHealth(row))))
      .onConflict((oc) => oc.columns(['subscription', 'lane']).doUpdateSet(excluded(healthColumns)))
      .execute()
  }
  await writeSmall(trx, change)
}

async function writeSmall(trx: Trx, { counts, orders, positions }: StateChange): Promise<void> {
  for (const chunk of chunks(counts)) {
    await trx
      .insertInto('counts')
      .values(
        chunk.map(({ tenant, subscriptionId: subscription, status, by: n }) =>
          cleaned({ tenant, subscription, status: statusNumber(status), n }),
        ),
      )
      .onConflict((oc) =>
        oc
          .columns(['subscription', 'tenant', 'status'])
          .doUpdateSet((eb) => ({ n: eb('counts.n', '+', eb.ref('excluded.n')) })),
      )
      .execute()
  }
  if (counts.length > 0) await trx.deleteFrom('counts').where('n', '=', 0).execute()
  for (const { key, kind, value, partition: part, offset: off } of orders) {
    await trx.deleteFrom('orders').where('key', '=', clean(key)).execute()
    if (value === null) continue
    await trx.insertInto('orders').values(cleaned({ key, kind, value, part, off })).execute()
  }
  for (const chunk of chunks(positions)) {
    await trx
      .insertInto('positions')
      .values(
        chunk.map(({ topic, partition, folded, logEnd, logEndAtMs }) => {
          return { topic, part: partition, folded, log_end: logEnd, log_end_ms: Math.round(logEndAtMs) }
        }),
      )
      .onConflict((oc) => oc.columns(['topic', 'part']).doUpdateSet(excluded(['folded', 'log_end', 'log_end_ms'])))
      .execute()
  }
}

function excluded<C extends string>(columns: readonly C[]) {
  return Object.fromEntries(columns.map((column) => [column, sql.ref(`excluded.${column}`)])) as Record<C, never>
}

/** Postgres has no NUL in text; a response may. */
function clean(text: string): string {
  return text.includes('\u0000') ? text.replaceAll('\u0000', '\ufffd') : text
}

function cleaned<T extends object>(row: T): T {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value === 'string' && value.includes('\u0000')) (row as Record<string, unknown>)[name] = clean(value)
  }
  return row
}

/** A statement has at most 65,535 parameters. */
function* chunks<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += 1_000) yield all.slice(i, i + 1_000)
}
