import type { Kysely } from 'kysely'
import type { Control } from '../core/control.ts'
import type { TopicPartition } from '../core/record.ts'
import {
  type DeliveryDetail,
  type DeliveryQuery,
  type DeliveryStatus,
  deliveryStatuses,
  type StatePage,
  type StatusCounts,
  type SubscriptionHealth,
} from '../core/state-view.ts'
import type { Clock, StateStore } from '../ports.ts'
import { decodeCursor, encodeCursor, pageLimit } from './cursor.ts'
import { queryDeliveries } from './delivery-query.ts'
import { attemptView } from './flat-attempt.ts'
import { deliveryView } from './flat-delivery.ts'
import { healthOf } from './health-view.ts'
import type { StateHome, StateSnapshot } from './home.ts'
import type { StateTables } from './tables.ts'

/** Answers questions from whatever database is the live one; goes over to the next when a rebuild has exchanged it. */
export class QueryStore implements StateStore {
  readonly #home: StateHome
  readonly #clock: Clock
  #open: { readonly name: string | null; readonly snapshot: StateSnapshot } | null = null
  #lookedMs = Number.NEGATIVE_INFINITY
  #looking: Promise<Kysely<StateTables>> | null = null

  constructor(home: StateHome, clock: Clock) {
    this.#home = home
    this.#clock = clock
  }

  async deliveries(query: DeliveryQuery, page: StatePage) {
    return await queryDeliveries(await this.#db(), query, page)
  }

  async delivery(id: string, tenant?: string): Promise<DeliveryDetail | null> {
    const db = await this.#db()
    let select = db.selectFrom('deliveries').selectAll().where('id', '=', id)
    if (tenant !== undefined) select = select.where('tenant', '=', tenant)
    const flat = await select.executeTakeFirst()
    if (flat === undefined) return null
    const attempts = await db
      .selectFrom('attempts')
      .selectAll()
      .where('delivery', '=', flat.no)
      .orderBy('logged_ms', 'desc')
      .orderBy('lane', 'desc')
      .orderBy('off', 'desc')
      .limit(200)
      .execute()
    return { ...deliveryView(flat), log: attempts.reverse().map((one) => attemptView(one, id)) }
  }

  async subscriptionHealth(id: string, tenant?: string): Promise<SubscriptionHealth | null> {
    const db = await this.#db()
    const [found] = await healthOf(db, [id])
    return found === undefined || (tenant !== undefined && found.tenant !== tenant) ? null : found
  }

  async subscriptionsHealth(query: { readonly tenant?: string; readonly failing?: boolean }, page: StatePage) {
    const db = await this.#db()
    const limit = pageLimit(page)
    const after = page.cursor === null ? null : (decodeCursor(page.cursor, ['string'])[0] as string)
    let select = db.selectFrom('counts').select('subscription').distinct()
    if (query.failing === true) {
      select = select.where(
        'subscription',
        'in',
        db.selectFrom('health').select('subscription').where('consecutive', '>', 0),
      )
    }
    if (query.tenant !== undefined) select = select.where('tenant', '=', query.tenant)
    if (after !== null) select = select.where('subscription', '>', after)
    const ids = await select
      .orderBy('subscription')
      .limit(limit + 1)
      .execute()
    const shown = ids.slice(0, limit).map(({ subscription }) => subscription)
    const last = shown.at(-1)
    return {
      items: await healthOf(db, shown),
      nextCursor: ids.length > limit && last !== undefined ? encodeCursor([last]) : null,
    }
  }

  async counts(query: { readonly tenant?: string; readonly subscriptionId?: string }): Promise<StatusCounts> {
    const db = await this.#db()
    let select = db.selectFrom('counts').select(['status', ({ fn }) => fn.sum<number>('n').as('n')])
    if (query.tenant !== undefined) select = select.where('tenant', '=', query.tenant)
    if (query.subscriptionId !== undefined) select = select.where('subscription', '=', query.subscriptionId)
    const rows = await select.groupBy('status').execute()
    const counts = Object.fromEntries(deliveryStatuses.map((status) => [status, 0])) as Record<DeliveryStatus, number>
    for (const { status, n } of rows) counts[deliveryStatuses[status] as DeliveryStatus] = Number(n)
    return counts
  }

  async orders(query: { readonly kind?: string }, page: StatePage) {
    const db = await this.#db()
    const limit = pageLimit(page)
    let select = db.selectFrom('orders').select(['key', 'value', 'off'])
    if (query.kind !== undefined) select = select.where('kind', '=', query.kind)
    if (page.cursor !== null) select = select.where('key', '>', decodeCursor(page.cursor, ['string'])[0] as string)
    const rows = await select
      .orderBy('key')
      .limit(limit + 1)
      .execute()
    const items = rows.slice(0, limit).map(({ key, value, off }) => {
      return { ...(JSON.parse(value) as Control), key, offset: off }
    })
    const last = items.at(-1)
    return { items, nextCursor: rows.length > limit && last !== undefined ? encodeCursor([last.key]) : null }
  }

  async positions() {
    const db = await this.#db()
    const rows = await db.selectFrom('positions').selectAll().orderBy('topic').orderBy('part').execute()
    return rows.map(({ topic, part, folded, log_end, log_end_ms }) => {
      return { topic, partition: part, folded, logEnd: log_end, logEndAtMs: log_end_ms }
    })
  }

  async waitFor({ topic, partition, offset }: TopicPartition & { readonly offset: number }, timeoutMs: number) {
    const untilMs = this.#clock.mono() + timeoutMs
    for (;;) {
      const db = await this.#db()
      const row = await db
        .selectFrom('positions')
        .select('folded')
        .where('topic', '=', topic)
        .where('part', '=', partition)
        .executeTakeFirst()
      if ((row?.folded ?? 0) >= offset) return true
      const leftMs = untilMs - this.#clock.mono()
      if (leftMs <= 0) return false
      await new Promise<void>((resolve) => this.#clock.after(Math.min(pollMs, leftMs), resolve))
    }
  }

  async close(): Promise<void> {
    const open = this.#open
    this.#open = null
    await open?.snapshot.close()
  }

  async #db(): Promise<Kysely<StateTables>> {
    if (this.#open !== null && this.#clock.mono() - this.#lookedMs < lookMs) return this.#open.snapshot.db
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    return await this.#looking
  }

  async #look(): Promise<Kysely<StateTables>> {
    const name = await this.#home.current()
    this.#lookedMs = this.#clock.mono()
    if (this.#open !== null && this.#open.name === name) return this.#open.snapshot.db
    const snapshot = await this.#home.read()
    const former = this.#open
    this.#open = { name, snapshot }
    // A question that is on its way still has it.
    if (former !== null) this.#clock.after(30_000, () => void former.snapshot.close())
    return snapshot.db
  }
}

/** How long a state that was exchanged may still answer. */
const lookMs = 500
const pollMs = 25
