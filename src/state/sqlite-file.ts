import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { queryIndexes } from './query-indexes.ts'

/**
 * `live`: durable, read by others while it is written. `build`: a rebuild's, that nobody reads and that is made again when
 * anything goes wrong, so nothing is synced. `read`: never written here.
 */
export type SqliteMode = 'live' | 'build' | 'read'

export type SqlValue = string | number | null

/** Throws what SQLite throws. */
export function openSqliteFile(path: string, mode: SqliteMode): DatabaseSync {
  const raw = new DatabaseSync(path, { readOnly: mode === 'read', timeout: busyMs })
  try {
    for (const pragma of pragmas[mode]) raw.exec(`pragma ${pragma}`)
    return raw
  } catch (error) {
    raw.close()
    throw error
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

/** Each made once: they are run once per row. */
export class Statements {
  readonly raw: DatabaseSync
  readonly #made = new Map<string, StatementSync>()

  constructor(raw: DatabaseSync) {
    this.raw = raw
  }

  of(text: string): StatementSync {
    let statement = this.#made.get(text)
    if (statement === undefined) {
      statement = this.raw.prepare(text)
      this.#made.set(text, statement)
    }
    return statement
  }

  all(text: string, ...values: SqlValue[]): Record<string, unknown>[] {
    return this.of(text).all(...values) as Record<string, unknown>[]
  }

  transaction<T>(run: () => T): T {
    this.raw.exec('begin immediate')
    try {
      const result = run()
      this.raw.exec('commit')
      return result
    } catch (error) {
      if (this.raw.isTransaction) this.raw.exec('rollback')
      throw error
    }
  }

  close(): void {
    this.#made.clear()
    this.raw.close()
  }
}

/** Whoever writes holds the lock for one batch. */
const busyMs = 10_000

const pragmas: Readonly<Record<SqliteMode, readonly string[]>> = {
  // What a crash of the machine takes from the end of a WAL is folded again, offsets and all.
  live: ['journal_mode = wal', 'synchronous = normal', 'cache_size = -32768', 'temp_store = memory'],
  build: ['journal_mode = off', 'synchronous = off', 'locking_mode = exclusive', 'cache_size = -98304'],
  read: ['cache_size = -16384', 'query_only = on'],
}
