import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { HooktideError, messageOf } from '../core/error.ts'
import type { Clock } from '../ports.ts'
import { BuildWriter } from './build-writer.ts'
import type { OpenState, StateBuild, StateHome, StateSnapshot } from './home.ts'
import { openSqlite, type SqliteDatabase } from './sqlite-database.ts'
import { SqliteWriter } from './sqlite-writer.ts'

/**
 * A folder: one file per state, and `current` that names the live one. Swapping is renaming a new `current` over the old: the
 * database file itself can't be exchanged in place, as SQLite would apply the old one's write-ahead log to the new.
 */
export class SqliteHome implements StateHome {
  readonly where: string
  readonly #clock: Clock

  constructor(folder: string, clock: Clock) {
    this.where = folder
    this.#clock = clock
  }

  async open(): Promise<OpenState> {
    await this.#folder()
    let name = await this.current()
    if (name === null) {
      name = this.#newName()
      const { raw } = await openSqlite(join(this.where, name), 'live')
      raw.close()
      name = await this.#publishFirst(name)
    }
    return await this.#openFile(name)
  }

  async current(): Promise<string | null> {
    try {
      return (await readFile(join(this.where, 'current'), 'utf8')).trim()
    } catch {
      return null
    }
  }

  async read(): Promise<StateSnapshot> {
    const { db } = await openSqlite(join(this.where, await this.#existing()), 'read')
    return { db, close: () => db.destroy() }
  }

  async snapshot(): Promise<StateSnapshot> {
    const { db, raw } = await openSqlite(join(this.where, await this.#existing()), 'read')
    raw.exec('begin')
    // The moment is that of the first reading.
    await sql`select count(*) from positions`.execute(db)
    return { db, close: () => db.destroy() }
  }

  async build(temporary = false): Promise<StateBuild> {
    await this.#folder()
    await this.#sweep()
    const name = this.#newName()
    const path = join(this.where, `${name}${building}`)
    const { raw } = await openSqlite(path, 'build')
    raw.close()
    const writer = new BuildWriter(path)
    let read: SqliteDatabase | null = null
    const close = async () => {
      await writer.abandon()
      await read?.db.destroy()
      read = null
    }
    return {
      name,
      writer,
      close,
      built: async () => {
        await writer.close()
        read ??= await openSqlite(path, 'read')
        return read.db
      },
      publish: async () => {
        if (temporary) throw new HooktideError('internal', 'a temporary state is not published')
        await writer.finish()
        await close()
        // Nothing of it was synced while it was built.
        await synced(path)
        await rename(path, join(this.where, name))
        const former = await this.current()
        await this.#point(name)
        if (former !== null) await this.#remove(former)
      },
      discard: async () => {
        await close()
        await this.#remove(`${name}${building}`)
      },
    }
  }

  async close(): Promise<void> {}

  async #openFile(name: string): Promise<OpenState> {
    const database = await openSqlite(join(this.where, name), 'live')
    const writer = new SqliteWriter(database)
    return { name, writer, db: database.db, close: () => writer.close() }
  }

  /** Of two processes that find no state at the same moment one wins, and both use what it made. */
  async #publishFirst(name: string): Promise<string> {
    try {
      await writeFile(join(this.where, 'current'), name, { flag: 'wx' })
      return name
    } catch {
      await this.#remove(name)
      return await this.#existing()
    }
  }

  async #point(name: string): Promise<void> {
    const next = join(this.where, 'current.next')
    await writeFile(next, name)
    await synced(next)
    await rename(next, join(this.where, 'current'))
  }

  async #existing(): Promise<string> {
    const name = await this.current()
    if (name !== null) return name
    throw new HooktideError('state.unavailable', `there is no delivery state in ${this.where}`, {
      remedy: 'Run a projector (`hooktide up --roles projector`, state.enabled), or `hooktide state rebuild`.',
    })
  }

  async #folder(): Promise<void> {
    try {
      await mkdir(this.where, { recursive: true, mode: 0o700 })
    } catch (cause) {
      throw new HooktideError('state.unavailable', `the folder ${this.where} can not be made: ${messageOf(cause)}`, {
        cause,
        remedy: 'Correct state.path, or its rights.',
      })
    }
  }

  /** What builds left behind that crashed: nobody has touched it for a while. */
  async #sweep(): Promise<void> {
    for (const name of await readdir(this.where)) {
      if (!name.includes(building)) continue
      const { mtimeMs } = await stat(join(this.where, name)).catch(() => ({ mtimeMs: 0 }))
      if (this.#clock.now() - mtimeMs > abandonedMs) await rm(join(this.where, name), { force: true })
    }
  }

  /** Whoever has it open goes on reading it. */
  async #remove(name: string): Promise<void> {
    for (const suffix of ['', '-wal', '-shm', '-journal']) {
      await rm(join(this.where, name + suffix), { force: true }).catch(() => undefined)
    }
  }

  #newName(): string {
    const chance = Math.floor(this.#clock.random() * 36 ** 6).toString(36)
    return `state-${Math.floor(this.#clock.now())}-${chance}.sqlite`
  }
}

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

const building = '.building'
const abandonedMs = 10 * 60_000
