import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { HooktideError, messageOf } from '../core/error.ts'
import type { Clock } from '../ports.ts'
import type { OpenState, StateBuild, StateHome, StateSnapshot } from './home.ts'
import { migrate } from './migrations.ts'
import { PostgresWriter } from './postgres-writer.ts'
import { queryIndexes } from './query-indexes.ts'
import type { StateTables } from './tables.ts'

/**
 * A schema of a Postgres database. A rebuild fills another schema beside it and renames: connections find tables by the
 * schema's name, so they are at the new one from their next statement on.
 */
export class PostgresHome implements StateHome {
  readonly where: string
  readonly #url: string
  readonly #schema: string
  readonly #clock: Clock
  #shared: Kysely<StateTables> | null = null

  constructor(url: string, schema: string, clock: Clock) {
    this.#url = url
    this.#schema = schema
    this.#clock = clock
    const { host, pathname } = URL.canParse(url) ? new URL(url) : { host: 'invalid-url', pathname: '' }
    this.where = `postgres://${host}${pathname}, schema ${schema}`
  }

  async open(): Promise<OpenState> {
    const db = this.#connect(this.#schema, 4)
    try {
      await this.#prepare(db, this.#schema)
      for (const statement of Object.values(queryIndexes)) await sql.raw(statement).execute(db)
      const writer = new PostgresWriter(db)
      return { name: (await this.current()) ?? '', writer, db, close: () => writer.close() }
    } catch (error) {
      await db.destroy()
      throw this.#unavailable(error)
    }
  }

  async current(): Promise<string | null> {
    this.#shared ??= this.#connect(this.#schema, 4)
    try {
      // A schema keeps its number when it is renamed.
      const found = await sql<{ oid: number }>`
        select n.oid from pg_namespace n join pg_class c on c.relnamespace = n.oid
        where n.nspname = ${this.#schema} and c.relname = 'positions'`.execute(this.#shared)
      return found.rows[0] === undefined ? null : String(found.rows[0].oid)
    } catch (error) {
      throw this.#unavailable(error)
    }
  }

  async read(): Promise<StateSnapshot> {
    await this.#existing()
    const db = this.#connect(this.#schema, 4)
    return { db, close: () => db.destroy() }
  }

  async snapshot(): Promise<StateSnapshot> {
    await this.#existing()
    const db = this.#connect(this.#schema, 1)
    try {
      // One connection, so this holds for whatever is asked through it.
      await sql`begin isolation level repeatable read read only`.execute(db)
      await sql`select count(*) from positions`.execute(db)
      return { db, close: () => db.destroy() }
    } catch (error) {
      await db.destroy()
      throw this.#unavailable(error)
    }
  }

  async build(temporary = false): Promise<StateBuild> {
    const chance = Math.floor(this.#clock.random() * 36 ** 6).toString(36)
    const name = `${this.#schema}_${temporary ? 'check' : 'next'}_${chance}`
    const db = this.#connect(name, 2)
    let open = true
    const close = async () => {
      if (open) await db.destroy()
      open = false
    }
    try {
      await this.#prepare(db, name)
    } catch (error) {
      await close()
      throw this.#unavailable(error)
    }
    const drop = async () => {
      const admin = this.#connect(this.#schema, 1)
      await sql`drop schema if exists ${sql.id(name)} cascade`.execute(admin)
      await admin.destroy()
    }
    return {
      name,
      writer: new PostgresWriter(db),
      built: async () => db,
      close,
      publish: async () => {
        if (temporary) throw new HooktideError('internal', 'a temporary state is not published')
        for (const statement of Object.values(queryIndexes)) await sql.raw(statement).execute(db)
        await sql`analyze`.execute(db)
        await this.#swap(db, name)
        await close()
      },
      discard: async () => {
        await close()
        await drop()
      },
    }
  }

  async close(): Promise<void> {
    await this.#shared?.destroy()
    this.#shared = null
  }

  async #swap(db: Kysely<StateTables>, name: string): Promise<void> {
    const former = `${name}_former`
    await db.transaction().execute(async (trx) => {
      // A batch that is being written ends first; the next finds other positions.
      await sql`select pg_advisory_xact_lock(hashtext('hooktide'), hashtext(${this.#schema}))`.execute(trx)
      const exists = await sql`select 1 from pg_namespace where nspname = ${this.#schema}`.execute(trx)
      if (exists.rows.length > 0)
        await sql`alter schema ${sql.id(this.#schema)} rename to ${sql.id(former)}`.execute(trx)
      await sql`alter schema ${sql.id(name)} rename to ${sql.id(this.#schema)}`.execute(trx)
    })
    await sql`drop schema if exists ${sql.id(former)} cascade`.execute(db)
  }

  async #prepare(db: Kysely<StateTables>, schema: string): Promise<void> {
    await sql`create schema if not exists ${sql.id(schema)}`.execute(db)
    await migrate(db, 'postgres', schema)
  }

  async #existing(): Promise<void> {
    if ((await this.current()) !== null) return
    throw new HooktideError('state.unavailable', `there is no delivery state in ${this.where}`, {
      remedy: 'Run a projector (`hooktide up --roles projector`, state.enabled), or `hooktide state rebuild`.',
    })
  }

  #connect(schema: string, max: number): Kysely<StateTables> {
    const pool = new pg.Pool({
      connectionString: this.#url,
      max,
      options: `-c search_path=${schema}`,
      application_name: 'hooktide',
      connectionTimeoutMillis: 5_000,
      // Numbers here are below 2^53, as offsets are in all of Hooktide.
      types: { getTypeParser: (oid, format) => (oid === int8 ? Number : pg.types.getTypeParser(oid, format)) },
    })
    // A connection that breaks while nobody uses it; the next question makes another.
    pool.on('error', () => undefined)
    return new Kysely<StateTables>({ dialect: new PostgresDialect({ pool }) })
  }

  #unavailable(cause: unknown): HooktideError {
    if (cause instanceof HooktideError) return cause
    return new HooktideError('state.unavailable', `the delivery state in ${this.where}: ${messageOf(cause)}`, {
      cause,
      remedy: 'Check state.urlRef, that the database is up, and that its user may create schemas in it.',
    })
  }
}

const int8 = 20
