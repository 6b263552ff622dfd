import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import { attemptColumns, deliveryColumns, healthColumns, type StateTables } from './tables.ts'

export interface Difference {
  readonly table: string
  /** What the row is found by. */
  readonly key: string
  /** Columns that differ; absent: the row is missing on one side. */
  readonly columns?: readonly { readonly column: string; readonly live: unknown; readonly rebuilt: unknown }[]
  readonly missing?: 'live' | 'rebuilt'
}

export interface Comparison {
  readonly rows: number
  readonly differences: number
  /** Differences only in what a shortened log can't tell any more. */
  readonly forgotten: number
}

type Row = Readonly<Record<string, unknown>>

interface Table {
  readonly table: string
  readonly keys: readonly string[]
  readonly columns: readonly string[]
  /** Next rows behind a key, in order of the keys. */
  page(db: Kysely<StateTables>, after: readonly unknown[] | null): Promise<readonly Row[]>
}

/** Compares two states row by row, both read in the order of their keys. `shortened`: the log no longer begins at its beginning. */
export async function compareStates(
  live: Kysely<StateTables>,
  rebuilt: Kysely<StateTables>,
  options: {
    readonly shortened: boolean
    readonly signal: AbortSignal
    report(difference: Difference): void
    progress(rows: number): void
  },
): Promise<Comparison> {
  const total = { rows: 0, differences: 0, forgotten: 0 }
  for (const table of tables) {
    const left = rowsOf(table, live, options.signal)
    const right = rowsOf(table, rebuilt, options.signal)
    let [a, b] = [await left.next(), await right.next()]
    while (a.done !== true || b.done !== true) {
      const order = a.done === true ? 1 : b.done === true ? -1 : compareKeys(table, a.value, b.value)
      const difference = differenceOf(table, order, a.value as Row, b.value as Row)
      if (difference !== null) {
        if (options.shortened && isForgotten(difference)) total.forgotten++
        else {
          total.differences++
          options.report(difference)
        }
      }
      if (++total.rows % 5_000 === 0) options.progress(total.rows)
      if (order <= 0) a = await left.next()
      if (order >= 0) b = await right.next()
    }
  }
  return total
}

function differenceOf(table: Table, order: number, live: Row, rebuilt: Row): Difference | null {
  const key = (row: Row) => table.keys.map((column) => String(row[column])).join(' ')
  if (order < 0) return { table: table.table, key: key(live), missing: 'rebuilt' }
  if (order > 0) return { table: table.table, key: key(rebuilt), missing: 'live' }
  const columns = table.columns
    .filter((column) => live[column] !== rebuilt[column])
    .map((column) => ({ column, live: live[column], rebuilt: rebuilt[column] }))
  return columns.length === 0 ? null : { table: table.table, key: key(live), columns }
}

/** What records before the last one told is kept by the live state for as long as the delivery is. */
function isForgotten({ table, columns }: Difference): boolean {
  return table === 'deliveries' && columns !== undefined && columns.every(({ column }) => fadingColumns.has(column))
}

const fadingColumns = new Set([
  'created_ms',
  'created_from',
  'event_ms',
  'ordering_key',
  'content_type',
  'bytes',
  'traceparent',
  // Of a delivery whose first attempts are gone.
  'posts',
  'post_n',
  'post_status',
  'others',
])

async function* rowsOf(table: Table, db: Kysely<StateTables>, signal: AbortSignal): AsyncGenerator<Row> {
  let after: readonly unknown[] | null = null
  for (;;) {
    signal.throwIfAborted()
    const rows: readonly Row[] = await table.page(db, after)
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageRows) return
    after = table.keys.map((column) => last[column])
  }
}

function compareKeys(table: Table, a: Row, b: Row): number {
  for (const column of table.keys) {
    const [x, y] = [a[column] as string | number, b[column] as string | number]
    if (x === y) continue
    if (typeof x === 'number' && typeof y === 'number') return x - y
    // As databases compare: by bytes.
    return Buffer.compare(Buffer.from(String(x)), Buffer.from(String(y)))
  }
  return 0
}

function table(name: keyof StateTables, keys: readonly string[], columns: readonly string[]): Table {
  return {
    table: name,
    keys,
    columns: [...columns.filter((column) => !keys.includes(column)), ...(name === 'attempts' ? ['delivery_id'] : [])],
    async page(db, after) {
      let select = db.selectFrom(name).select(columns as never[]) as SelectQueryBuilder<StateTables, never, Row>
      // Numbers of deliveries are another's after a rebuild.
      if (name === 'attempts') select = select.select(deliveryOfAttempt)
      if (after !== null) {
        const place = sql`(${sql.join(keys.map((key) => sql.ref(key)))})`
        select = select.where(sql<boolean>`${place} > (${sql.join(after)})`)
      }
      for (const key of keys) select = select.orderBy(sql.ref(key))
      return await select.limit(pageRows).execute()
    },
  }
}

const deliveryOfAttempt = sql<string>`(select id from deliveries where no = attempts.delivery)`.as('delivery_id')
const pageRows = 2_000

const tables: readonly Table[] = [
  table(
    'deliveries',
    ['id'],
    deliveryColumns.filter((column) => column !== 'no'),
  ),
  table(
    'attempts',
    ['lane', 'off'],
    attemptColumns.filter((column) => column !== 'delivery'),
  ),
  table('health', ['subscription', 'lane'], healthColumns),
  table('counts', ['subscription', 'tenant', 'status'], ['subscription', 'tenant', 'status', 'n']),
  table('orders', ['key'], ['key', 'kind', 'value', 'off']),
]
