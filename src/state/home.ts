import type { Kysely } from 'kysely'
import type { StateTables } from './tables.ts'
import type { StateWriter } from './writer.ts'

/** One database with the tables in it, open for writing. */
export interface OpenState {
  /** As `current` would say it, were it the live one. */
  readonly name: string
  readonly writer: StateWriter
  readonly db: Kysely<StateTables>
  close(): Promise<void>
}

/** A database that is being built beside the live one. */
export interface StateBuild {
  readonly name: string
  readonly writer: StateWriter
  close(): Promise<void>
  /** What was built, for reading; nothing is written any more. */
  built(): Promise<Kysely<StateTables>>
  /** Takes the place of the live one, at once and as a whole; projectors and questions go over to it by themselves. */
  publish(): Promise<void>
  discard(): Promise<void>
}

/** Open for reading, as of one moment: what is written meanwhile is not seen. */
export interface StateSnapshot {
  readonly db: Kysely<StateTables>
  close(): Promise<void>
}

/** Where the state is kept: a folder with SQLite files, or schemas of a Postgres database. */
export interface StateHome {
  /** Where it is, in words, without passwords. */
  readonly where: string
  /** The live state to write to; made empty where there is none. */
  open(): Promise<OpenState>
  /** Tells one live database from the next; null: there is none yet. Cheap. */
  current(): Promise<string | null>
  /** For questions; rejects `state.unavailable` where there is no state yet. */
  read(): Promise<StateSnapshot>
  snapshot(): Promise<StateSnapshot>
  /** One at a time; what an earlier one that crashed left behind is removed. `temporary`: will not be published. */
  build(temporary?: boolean): Promise<StateBuild>
  close(): Promise<void>
}
