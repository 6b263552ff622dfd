/**
 * Indexes that only questions need: a rebuild makes them at its end, which is cheaper by far than keeping them meanwhile.
 * What is not at its end, and what is dead, is a small part: the indexes by status hold only that.
 */
export const queryIndexes: Readonly<Record<string, string>> = {
  deliveries_event: 'create index if not exists deliveries_event on deliveries (event)',
  deliveries_subscription:
    'create index if not exists deliveries_subscription on deliveries (subscription, created_ms)',
  deliveries_tenant: 'create index if not exists deliveries_tenant on deliveries (tenant, created_ms)',
  deliveries_created: 'create index if not exists deliveries_created on deliveries (created_ms)',
  deliveries_open:
    'create index if not exists deliveries_open on deliveries (status, created_ms) where status not in (3, 5)',
  deliveries_open_subscription:
    'create index if not exists deliveries_open_subscription on deliveries (subscription, status, created_ms) where status not in (3, 5)',
  deliveries_again: 'create index if not exists deliveries_again on deliveries (no) where others is not null',
  attempts_delivery: 'create index if not exists attempts_delivery on attempts (delivery)',
}
