import type { Kysely, Transaction } from 'kysely'
import { nextEpoch } from './epoch.ts'
import type { StateTables } from './tables.ts'
import type { Erased } from './writer.ts'

/** Everything of one subscription, tenant or event, in one transaction; returns how many deliveries there were. */
export async function eraseRows(db: Kysely<StateTables>, what: Erased): Promise<number> {
  const { by, id } = what
  return await db.transaction().execute(async (trx) => {
    await nextEpoch(trx)
    if (by === 'event') await takeFromCounts(trx, id)
    else {
      await trx.deleteFrom('counts').where(by, '=', id).execute()
      await trx.deleteFrom('health').where(by, '=', id).execute()
    }
    await trx
      .deleteFrom('attempts')
      .where('delivery', 'in', trx.selectFrom('deliveries').select('no').where(by, '=', id))
      .execute()
    const { numDeletedRows } = await trx.deleteFrom('deliveries').where(by, '=', id).executeTakeFirstOrThrow()
    return Number(numDeletedRows)
  })
}

async function takeFromCounts(trx: Transaction<StateTables>, event: string): Promise<void> {
  const gone = await trx
    .selectFrom('deliveries')
    .select(['tenant', 'subscription', 'status', ({ fn }) => fn.countAll<number>().as('n')])
    .where('event', '=', event)
    .groupBy(['tenant', 'subscription', 'status'])
    .execute()
  for (const { tenant, subscription, status, n } of gone) {
    await trx
      .updateTable('counts')
      .set((eb) => ({ n: eb('n', '-', n) }))
      .where('tenant', '=', tenant)
      .where('subscription', '=', subscription)
      .where('status', '=', status)
      .execute()
  }
  await trx.deleteFrom('counts').where('n', '<=', 0).execute()
}
