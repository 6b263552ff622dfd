import { type Kysely, sql } from 'kysely'
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration'
import type { StateTables } from './tables.ts'

export type Dialect = 'sqlite' | 'postgres'

/**
 * How the tables came to be, oldest first; never changed once released. The state follows from the log, so a migration
 * that would have to work out old rows anew may drop everything instead: `hooktide state rebuild` makes it again.
 */
function migrations(dialect: Dialect): Record<string, Migration> {
  return { '0001-tables': { up: (db) => createTables(db, dialect) } }
}

/** Brings the tables to this version. Throws what the database throws. */
export async function migrate(db: Kysely<StateTables>, dialect: Dialect, schema?: string): Promise<void> {
  const provider: MigrationProvider = { getMigrations: async () => migrations(dialect) }
  const migrator = new Migrator({ db, provider, ...(schema === undefined ? {} : { migrationTableSchema: schema }) })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
}

async function createTables(db: Kysely<StateTables>, dialect: Dialect): Promise<void> {
  const { schema } = db
  // By bytes in both, whatever language a Postgres database has: keys are compared between databases.
  const text = dialect === 'sqlite' ? 'text' : sql`text collate "C"`
  await schema
    .createTable('deliveries')
    // In SQLite this is the row's own number and costs no index.
    .addColumn('no', dialect === 'sqlite' ? 'integer' : 'bigint', (c) => c.notNull().primaryKey())
    .addColumn('id', text, (c) => c.notNull())
    .addColumn('tenant', text, (c) => c.notNull())
    .addColumn('subscription', text, (c) => c.notNull())
    .addColumn('event', text, (c) => c.notNull())
    .addColumn('type', text, (c) => c.notNull())
    .addColumn('created_ms', 'bigint', (c) => c.notNull())
    .addColumn('created_from', 'integer', (c) => c.notNull())
    .addColumn('event_ms', 'bigint')
    .addColumn('ordering_key', text)
    .addColumn('content_type', text)
    .addColumn('bytes', 'bigint')
    .addColumn('traceparent', text)
    .addColumn('status', 'integer', (c) => c.notNull())
    .addColumn('posts', 'integer', (c) => c.notNull())
    .addColumn('due_ms', 'bigint')
    .addColumn('error', text)
    .addColumn('post_status', 'integer')
    .addColumn('reason', text)
    .addColumn('updated_ms', 'bigint', (c) => c.notNull())
    .addColumn('topic', text, (c) => c.notNull())
    .addColumn('part', 'integer', (c) => c.notNull())
    .addColumn('off', 'bigint', (c) => c.notNull())
    .addColumn('n', 'integer', (c) => c.notNull())
    .addColumn('rank', 'integer', (c) => c.notNull())
    .addColumn('post_n', 'integer', (c) => c.notNull())
    .addColumn('origin', text, (c) => c.notNull())
    .addColumn('sendings', 'integer', (c) => c.notNull())
    .addColumn('others', text)
    .execute()
  await schema
    .createTable('attempts')
    .addColumn('lane', 'integer', (c) => c.notNull())
    .addColumn('off', 'bigint', (c) => c.notNull())
    .addColumn('delivery', 'bigint', (c) => c.notNull())
    .addColumn('number', 'integer', (c) => c.notNull())
    .addColumn('logged_ms', 'bigint', (c) => c.notNull())
    .addColumn('started_ms', 'bigint', (c) => c.notNull())
    .addColumn('duration_ms', 'integer', (c) => c.notNull())
    .addColumn('status', 'integer')
    .addColumn('error', text)
    .addColumn('error_class', text)
    .addColumn('outcome', text)
    .addColumn('settlement', text, (c) => c.notNull())
    .addColumn('due_ms', 'bigint')
    .addColumn('excerpt', text, (c) => c.notNull())
    .addColumn('url', text, (c) => c.notNull())
    .addColumn('origin', text, (c) => c.notNull())
    .execute()
  await schema
    .createTable('health')
    .addColumn('subscription', text, (c) => c.notNull())
    .addColumn('lane', 'integer', (c) => c.notNull())
    .addColumn('tenant', text, (c) => c.notNull())
    .addColumn('succeeded', 'bigint', (c) => c.notNull())
    .addColumn('failed', 'bigint', (c) => c.notNull())
    .addColumn('last_success_ms', 'bigint')
    .addColumn('last_success_off', 'bigint')
    .addColumn('last_failure_ms', 'bigint')
    .addColumn('last_failure_off', 'bigint')
    .addColumn('last_error', text)
    .addColumn('consecutive', 'bigint', (c) => c.notNull())
    .addColumn('failing_since_ms', 'bigint')
    .addPrimaryKeyConstraint('health_pk', ['subscription', 'lane'])
    .execute()
  await schema
    .createTable('counts')
    .addColumn('tenant', text, (c) => c.notNull())
    .addColumn('subscription', text, (c) => c.notNull())
    .addColumn('status', 'integer', (c) => c.notNull())
    .addColumn('n', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('counts_pk', ['subscription', 'tenant', 'status'])
    .execute()
  await schema
    .createTable('orders')
    .addColumn('key', text, (c) => c.notNull().primaryKey())
    .addColumn('kind', text, (c) => c.notNull())
    .addColumn('value', text, (c) => c.notNull())
    .addColumn('part', 'integer', (c) => c.notNull())
    .addColumn('off', 'bigint', (c) => c.notNull())
    .execute()
  await schema
    .createTable('positions')
    .addColumn('topic', text, (c) => c.notNull())
    .addColumn('part', 'integer', (c) => c.notNull())
    .addColumn('folded', 'bigint', (c) => c.notNull())
    .addColumn('log_end', 'bigint', (c) => c.notNull())
    .addColumn('log_end_ms', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('positions_pk', ['topic', 'part'])
    .execute()
  await schema
    .createTable('meta')
    .addColumn('key', text, (c) => c.notNull().primaryKey())
    .addColumn('value', text, (c) => c.notNull())
    .execute()
  await sql`create unique index deliveries_id on deliveries (id)`.execute(db)
  await sql`create unique index attempts_place on attempts (lane, off)`.execute(db)
}
