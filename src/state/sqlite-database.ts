import { DatabaseSync } from 'node:sqlite'
import { Kysely, SqliteDialect } from 'kysely'
import { HooktideError, messageOf } from '../core/error.ts'
import { migrate, queryIndexes } from './migrations.ts'
import type { StateTables } from './tables.ts'

export interface SqliteDatabase {
  readonly raw: DatabaseSync
  readonly db: Kysely<StateTables>
}

/**
 * `live`: durable, read by others while it is written. `build`: a rebuild's, that nobody reads and that is made again when
 * anything goes wrong, so nothing is synced. `read`: never written here.
 */
export type SqliteMode = 'live' | 'build' | 'read'

/** Opens a database file; made with its tables where there is none, but for `read`. Rejects `state.unavailable`. */
export async function openSqlite(path: string, mode: SqliteMode): Promise<SqliteDatabase> {
  let raw: DatabaseSync | null = null
  try {
    raw = new DatabaseSync(path, { readOnly: mode === 'read', timeout: busyMs })
    for (const pragma of pragmas[mode]) raw.exec(`pragma ${pragma}`)
    const db = overKysely(raw)
    if (mode !== 'read') await migrate(db, 'sqlite')
    if (mode === 'live') createQueryIndexes(raw)
    return { raw, db }
  } catch (cause) {
    raw?.close()
    throw new HooktideError(
      'state.unavailable',
      `the delivery state in ${path} can not be opened: ${messageOf(cause)}`,
      {
        cause,
        remedy:
          'Check state.path and its rights. The state follows from the log: `hooktide state rebuild` makes it again.',
      },
    )
  }
}

export function createQueryIndexes(raw: DatabaseSync): void {
  for (const statement of Object.values(queryIndexes)) raw.exec(statement)
}

/** After a build: from now on it is durable and can be read while it is written. */
export function finishBuild(raw: DatabaseSync): void {
  createQueryIndexes(raw)
  raw.exec('pragma synchronous = full')
  raw.exec('pragma journal_mode = wal')
}

function overKysely(raw: DatabaseSync): Kysely<StateTables> {
  return new Kysely<StateTables>({
    dialect: new SqliteDialect({
      database: {
        close: () => raw.close(),
        prepare(text) {
          const statement = raw.prepare(text)
          return {
            reader: statement.columns().length > 0,
            all: (values) => statement.all(...(values as SqlValue[])),
            run: (values) => statement.run(...(values as SqlValue[])),
            iterate: (values) => statement.iterate(...(values as SqlValue[])) as IterableIterator<unknown>,
          }
        },
      },
    }),
  })
}

export type SqlValue = string | number | null

/** Whoever writes holds the lock for one batch. */
const busyMs = 10_000

const pragmas: Readonly<Record<SqliteMode, readonly string[]>> = {
  // What a crash of the machine takes from the end of a WAL is folded again, offsets and all.
  live: ['journal_mode = wal', 'synchronous = normal', 'cache_size = -32768', 'temp_store = memory'],
  build: ['journal_mode = off', 'synchronous = off', 'locking_mode = exclusive', 'cache_size = -98304'],
  read: ['cache_size = -16384', 'query_only = on'],
}
