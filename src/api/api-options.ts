import type { Caller, Operations } from '../operations/contract.ts'
import type { Ingest } from '../operations/ingest.ts'
import type { Clock, Observer } from '../ports.ts'
import type { TokenSource } from './token-source.ts'

/** What the API is given: where it listens, whom it lets in, what it works with. */
export interface ApiOptions {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** Null: everybody who can reach it is an operator with every scope; on loopback only. */
  readonly tokens: TokenSource | null
  operations(caller: Caller): Operations
  readonly ingest: Ingest
  readonly clock: Clock
  readonly observer: Observer
  /** Largest event; bodies may be as large as it is in base64. */
  readonly maxEventBytes: number
  /** Of one event whose body goes into the object store; null: there is none. */
  readonly maxLargeBytes: number | null
  readonly version: string
}
