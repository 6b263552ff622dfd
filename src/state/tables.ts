/** Tables of the delivery state, the same in SQLite and Postgres; `migrations.ts` makes them. */
export interface StateTables {
  deliveries: FlatDelivery
  attempts: FlatAttempt
  health: FlatHealth
  counts: { tenant: string; subscription: string; status: number; n: number }
  orders: { key: string; kind: string; value: string; part: number; off: number }
  positions: { topic: string; part: number; folded: number; log_end: number; log_end_ms: number }
  meta: { key: string; value: string }
}

export interface FlatDelivery {
  /** Ours, in the order of arrival; another one after a rebuild. */
  no: number
  id: string
  tenant: string
  subscription: string
  event: string
  type: string
  created_ms: number
  created_from: number
  event_ms: number | null
  ordering_key: string | null
  content_type: string | null
  bytes: number | null
  traceparent: string | null
  status: number
  posts: number
  due_ms: number | null
  error: string | null
  post_status: number | null
  reason: string | null
  updated_ms: number
  topic: string
  part: number
  off: number
  n: number
  rank: number
  post_n: number
  origin: string
  sendings: number
  /** The other sendings as JSON; null, as nearly always: there are none. */
  others: string | null
}

/** Columns in the order in which statements name them. What a delivery is, then what becomes of it. */
export const identityColumns = ['tenant', 'subscription', 'event', 'type', 'created_ms', 'created_from'] as const
export const eventColumns = ['event_ms', 'ordering_key', 'content_type', 'bytes', 'traceparent'] as const
export const sendingColumns = [
  'status',
  'posts',
  'due_ms',
  'error',
  'post_status',
  'reason',
  'updated_ms',
  'topic',
  'part',
  'off',
  'n',
  'rank',
  'post_n',
  'origin',
  'sendings',
  'others',
] as const
export const deliveryColumns = ['no', 'id', ...identityColumns, ...eventColumns, ...sendingColumns] as const

export interface FlatAttempt {
  lane: number
  off: number
  /** `no` of its delivery. */
  delivery: number
  number: number
  logged_ms: number
  started_ms: number
  duration_ms: number
  status: number | null
  error: string | null
  error_class: string | null
  outcome: string | null
  settlement: string
  due_ms: number | null
  excerpt: string
  url: string
  origin: string
}

export const attemptColumns = [
  'lane',
  'off',
  'delivery',
  'number',
  'logged_ms',
  'started_ms',
  'duration_ms',
  'status',
  'error',
  'error_class',
  'outcome',
  'settlement',
  'due_ms',
  'excerpt',
  'url',
  'origin',
] as const

export interface FlatHealth {
  subscription: string
  lane: number
  tenant: string
  succeeded: number
  failed: number
  last_success_ms: number | null
  last_success_off: number | null
  last_failure_ms: number | null
  last_failure_off: number | null
  last_error: string | null
  consecutive: number
  failing_since_ms: number | null
}

export const healthColumns = [
  'subscription',
  'lane',
  'tenant',
  'succeeded',
  'failed',
  'last_success_ms',
  'last_success_off',
  'last_failure_ms',
  'last_failure_off',
  'last_error',
  'consecutive',
  'failing_since_ms',
] as const
