import type { DatabaseSync } from 'node:sqlite'
import { Kysely, SqliteDialect } from 'kysely'
import { HooktideError, messageOf } from '../core/error.ts'
import { migrate } from './migrations.ts'
import { createQueryIndexes, openSqliteFile, type SqliteMode, type SqlValue } from './sqlite-file.ts'
import type { StateTables } from './tables.ts'

export interface SqliteDatabase {
  readonly raw: DatabaseSync
  readonly db: Kysely<StateTables>
}

/** Opens a database file; made with its tables where there is none, but for `read`. Rejects `state.unavailable`. */
export async function openSqlite(path: string, mode: SqliteMode): Promise<SqliteDatabase> {
  let raw: DatabaseSync | null = null
  try {
    raw = openSqliteFile(path, mode)
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
