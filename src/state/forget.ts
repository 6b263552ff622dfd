import { type Kysely, sql, type Transaction } from 'kysely'
import type { Attempt } from '../core/attempt.ts'
import { attemptSending, type Sending } from '../core/state-fact.ts'
import { forgetHealth, isSuccess } from '../core/state-health.ts'
import { currentSending, type DeliveryRow } from '../core/state-row.ts'
import { nextEpoch } from './epoch.ts'
import { flatHealth, healthRow } from './flat-attempt.ts'
import { deliveryRow, flatDelivery, statusNumber } from './flat-delivery.ts'
import type { FlatAttempt, FlatDelivery, StateTables } from './tables.ts'
import type { LogStarts } from './writer.ts'

/**
 * Takes out of the state what the log has forgotten, so that it stays what a rebuild would give. Attempts first: a
 * delivery whose later record is gone falls back to what its attempts say.
 */
export async function forgetRows(db: Kysely<StateTables>, starts: LogStarts, limit: number): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const touched = new Set<number>()
    const attempts = await forgetAttempts(trx, starts, limit, touched)
    const places = await forgottenPlaces(trx, starts, limit, touched)
    for (const chunk of chunks([...touched], 500)) {
      const rows = await trx.selectFrom('deliveries').selectAll().where('no', 'in', chunk).execute()
      for (const flat of rows) await forgetSendings(trx, flat, starts)
    }
    if (touched.size > 0 || attempts > 0) {
      await trx.deleteFrom('counts').where('n', '=', 0).execute()
      await nextEpoch(trx)
    }
    return Math.max(attempts, places)
  })
}

async function forgetAttempts(
  trx: Transaction<StateTables>,
  starts: LogStarts,
  limit: number,
  touched: Set<number>,
): Promise<number> {
  let left = limit
  for (const { topic, partition: lane, start } of starts.all) {
    if (topic !== starts.attemptsTopic || start === 0 || left <= 0) continue
    const gone = await trx
      .selectFrom('attempts')
      .leftJoin('deliveries', 'deliveries.no', 'attempts.delivery')
      .select([
        'attempts.off as off',
        'attempts.delivery as no',
        'attempts.outcome as outcome',
        'deliveries.subscription as subscription',
      ])
      .where('lane', '=', lane)
      .where('attempts.off', '<', start)
      .orderBy('attempts.off')
      .limit(left)
      .execute()
    const last = gone.at(-1)
    if (last === undefined) continue
    left -= gone.length
    // Not all at once: as if the log began behind what is taken now.
    const reached = left <= 0 ? last.off + 1 : start
    await trx.deleteFrom('attempts').where('lane', '=', lane).where('off', '<', reached).execute()
    const tally = new Map<string, { succeeded: number; failed: number }>()
    for (const { no, outcome, subscription } of gone) {
      touched.add(no)
      const success = isSuccess({ outcome: outcome as Attempt['outcome'] })
      if (success === null || subscription === null) continue
      const one = tally.get(subscription) ?? { succeeded: 0, failed: 0 }
      if (success) one.succeeded++
      else one.failed++
      tally.set(subscription, one)
    }
    for (const [subscription, gone] of tally) await forgetOfHealth(trx, subscription, lane, reached, gone)
  }
  return limit - left
}

async function forgetOfHealth(
  trx: Transaction<StateTables>,
  subscription: string,
  lane: number,
  start: number,
  gone: { succeeded: number; failed: number },
): Promise<void> {
  const at = trx.selectFrom('health').where('subscription', '=', subscription).where('lane', '=', lane)
  const flat = await at.selectAll().executeTakeFirst()
  if (flat === undefined) return
  const oldest = await trx
    .selectFrom('attempts')
    .innerJoin('deliveries', 'deliveries.no', 'attempts.delivery')
    .select('attempts.started_ms as ms')
    .where('lane', '=', lane)
    .where('deliveries.subscription', '=', subscription)
    .where('outcome', 'is not', null)
    .where('outcome', 'not in', ['delivered', 'interrupted'])
    .orderBy('attempts.off')
    .limit(1)
    .executeTakeFirst()
  const row = forgetHealth(healthRow(flat), { start, ...gone, oldestFailureMs: oldest?.ms ?? null })
  const where = { subscription, lane }
  if (row === null) {
    await trx.deleteFrom('health').where('subscription', '=', subscription).where('lane', '=', lane).execute()
    return
  }
  const { subscription: _s, lane: _l, ...set } = flatHealth(row)
  await trx
    .updateTable('health')
    .set(set)
    .where('subscription', '=', where.subscription)
    .where('lane', '=', where.lane)
    .execute()
}

/** Deliveries that stand where the log has forgotten them. Those that are at their end for good stand in `attempts`. */
async function forgottenPlaces(
  trx: Transaction<StateTables>,
  starts: LogStarts,
  limit: number,
  touched: Set<number>,
): Promise<number> {
  let left = limit
  for (const { topic, partition, start } of starts.all) {
    if (start === 0 || left <= 0 || topic === starts.attemptsTopic) continue
    const rows = await trx
      .selectFrom('deliveries')
      .select('no')
      .where(notSettled)
      .where('topic', '=', topic)
      .where('part', '=', partition)
      .where('off', '<', start)
      .limit(left)
      .execute()
    left -= rows.length
    for (const { no } of rows) touched.add(no)
  }
  const again = await trx.selectFrom('deliveries').select(['no', 'others']).where('others', 'is not', null).execute()
  for (const { no, others } of again) {
    const gone = (JSON.parse(others as string) as Sending[]).some(
      ({ topic, partition, offset }) => offset < starts.of(topic, partition),
    )
    if (gone) touched.add(no)
  }
  return limit - left
}

async function forgetSendings(trx: Transaction<StateTables>, flat: FlatDelivery, starts: LogStarts): Promise<void> {
  const row = deliveryRow(flat)
  const sendings: Sending[] = []
  let gone = false
  for (const sending of row.sendings) {
    if (sending.offset >= starts.of(sending.topic, sending.partition)) sendings.push(sending)
    else {
      gone = true
      const fallback = await lastAttempt(trx, flat.no, sending.origin, starts.attemptsTopic)
      if (fallback !== null) sendings.push(fallback)
    }
  }
  if (!gone) return
  await count(trx, flat, flat.status, -1)
  if (sendings.length === 0) {
    await trx.deleteFrom('deliveries').where('no', '=', flat.no).execute()
    return
  }
  const left: DeliveryRow = { ...row, sendings }
  const { no, id: _, ...set } = flatDelivery(flat.no, left)
  await count(trx, flat, statusNumber(currentSending(left).status), 1)
  await trx.updateTable('deliveries').set(set).where('no', '=', no).execute()
}

async function lastAttempt(trx: Transaction<StateTables>, no: number, origin: string, topic: string) {
  const flat = (await trx
    .selectFrom('attempts')
    .selectAll()
    .where('delivery', '=', no)
    .where('origin', '=', origin)
    .orderBy('number', 'desc')
    .orderBy('off', 'desc')
    .limit(1)
    .executeTakeFirst()) as FlatAttempt | undefined
  if (flat === undefined) return null
  return attemptSending({ topic, partition: flat.lane, offset: flat.off }, flat.logged_ms, {
    attempt: flat.number,
    settlement: flat.settlement as Attempt['settlement'],
    outcome: flat.outcome as Attempt['outcome'],
    status: flat.status,
    error: flat.error,
    dueMs: flat.due_ms,
    origin: flat.origin,
  })
}

async function count(trx: Transaction<StateTables>, flat: FlatDelivery, status: number, by: number): Promise<void> {
  await trx
    .insertInto('counts')
    .values({ tenant: flat.tenant, subscription: flat.subscription, status, n: by })
    .onConflict((oc) =>
      oc.columns(['subscription', 'tenant', 'status']).doUpdateSet((eb) => ({ n: eb('counts.n', '+', by) })),
    )
    .execute()
}

/** As the partial indexes say it, so that they are used. */
const notSettled = sql<boolean>`status not in (3, 5)`

function* chunks<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += size) yield all.slice(i, i + size)
}
