import type { Statements } from './sqlite-file.ts'
import { deliveryColumns, type FlatDelivery, type FlatHealth, healthColumns } from './tables.ts'

/** What a fold asks for: rows as they stand in the tables. */
export function readDeliveries(statements: Statements, ids: readonly string[]): FlatDelivery[] {
  const select = statements.of(`select ${deliveryColumns.join()} from deliveries where id = ?`)
  return ids.flatMap((id) => (select.get(id) as FlatDelivery | undefined) ?? [])
}

export interface HealthKey {
  readonly subscriptionId: string
  readonly lane: number
}

export function readHealth(statements: Statements, keys: readonly HealthKey[]): FlatHealth[] {
  const select = statements.of(`select ${healthColumns.join()} from health where subscription = ? and lane = ?`)
  return keys.flatMap(({ subscriptionId, lane }) => (select.get(subscriptionId, lane) as FlatHealth | undefined) ?? [])
}
