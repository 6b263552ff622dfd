import { sql, type Transaction } from 'kysely'
import type { StateTables } from './tables.ts'

/**
 * Rows were taken out by somebody who does not fold: a projector that remembers rows must look again. Writers compare the
 * epoch in the transaction of each batch.
 */
export async function nextEpoch(trx: Transaction<StateTables>): Promise<void> {
  await trx
    .insertInto('meta')
    .values({ key: 'epoch', value: '1' })
    .onConflict((oc) =>
      oc.column('key').doUpdateSet({ value: sql<string>`cast(cast(meta.value as bigint) + 1 as text)` }),
    )
    .execute()
}
