import { type Kysely, sql } from 'kysely'
import type { DeliveryQuery, DeliveryView, Paged, StatePage } from '../core/state-view.ts'
import { decodeCursor, encodeCursor, pageLimit } from './cursor.ts'
import { deliveryView, statusNumber } from './flat-delivery.ts'
import { deliveryColumns, type FlatDelivery, type StateTables } from './tables.ts'

type Column = 'id' | 'event' | 'subscription' | 'tenant' | 'status' | 'type'
type Filter = readonly [Column, string | number]

/**
 * Deliveries, newest first. One filter (or two) drives an index; what else is asked for is looked at row by row, at most
 * `scanBound` of them: a page may so be short, or empty, and still have a cursor to go on with. No question takes long.
 */
export async function queryDeliveries(
  db: Kysely<StateTables>,
  query: DeliveryQuery,
  page: StatePage,
): Promise<Paged<DeliveryView>> {
  const limit = pageLimit(page)
  const { driving, rest } = plan(query)
  const bound = rest.length === 0 ? limit + 1 : scanBound
  let inner = db.selectFrom('deliveries').select(deliveryColumns)
  for (const [column, value] of driving) inner = inner.where(column, '=', value)
  // Literally, or the partial indexes are not used.
  if (driving.some(([column]) => column === 'status')) inner = inner.where(sql<boolean>`status not in (3, 5)`)
  if (query.fromMs !== undefined) inner = inner.where('created_ms', '>=', query.fromMs)
  if (query.toMs !== undefined) inner = inner.where('created_ms', '<', query.toMs)
  if (page.cursor !== null) {
    const [ms, id] = decodeCursor(page.cursor, ['number', 'string']) as [number, string]
    inner = inner
      .where('created_ms', '<=', ms)
      .where(({ eb, or }) => or([eb('created_ms', '<', ms), eb('id', '<', id)]))
  }
  inner = inner.orderBy('created_ms', 'desc').orderBy('id', 'desc').limit(bound)
  if (rest.length === 0) {
    const rows = await inner.execute()
    return paged(rows.slice(0, limit), rows.length > limit)
  }
  let outer = db.selectFrom(inner.as('d')).selectAll()
  for (const [column, value] of rest) outer = outer.where(column, '=', value)
  const rows = await outer
    .orderBy('created_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
  if (rows.length > limit) return paged(rows.slice(0, limit), true)
  // Fewer than asked for: either there are no more, or the bound was reached; then it goes on behind the last one looked at.
  const last = await db
    .selectFrom(inner.as('d'))
    .select(['created_ms', 'id'])
    .orderBy('created_ms', 'desc')
    .orderBy('id', 'desc')
    .offset(bound - 1)
    .limit(1)
    .executeTakeFirst()
  return { items: rows.map(deliveryView), nextCursor: last === undefined ? null : cursorOf(last) }
}

function paged(rows: readonly FlatDelivery[], more: boolean): Paged<DeliveryView> {
  const last = rows.at(-1)
  return { items: rows.map(deliveryView), nextCursor: more && last !== undefined ? cursorOf(last) : null }
}

function cursorOf({ created_ms, id }: Pick<FlatDelivery, 'created_ms' | 'id'>): string {
  return encodeCursor([created_ms, id])
}

/** Which filters an index serves: the narrowest. */
function plan(query: DeliveryQuery): { driving: readonly Filter[]; rest: readonly Filter[] } {
  const all: Filter[] = []
  const add = (column: Column, value: string | number | undefined) => {
    if (value !== undefined) all.push([column, value])
  }
  add('id', query.deliveryId)
  add('event', query.eventId)
  add('subscription', query.subscriptionId)
  add('tenant', query.tenant)
  add('status', query.status === undefined ? undefined : statusNumber(query.status))
  add('type', query.type)
  const open = query.status !== undefined && query.status !== 'delivered' && query.status !== 'cancelled'
  const first = all[0]?.[0]
  const driving = all.filter(([column]) => {
    if (first === 'id' || first === 'event') return column === first
    if (column === 'status') return open
    if (column === 'tenant') return first === 'tenant' && !open
    return column === 'subscription'
  })
  return { driving, rest: all.filter((filter) => !driving.includes(filter)) }
}

const scanBound = 5_000
