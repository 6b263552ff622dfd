import type { ApiScope } from '../core/api-token.ts'
import type { Caller, Operations } from '../operations/contract.ts'
import type { Ingest } from '../operations/ingest.ts'
import type { JsonSchema } from './json-schema.ts'

/** What a handler gets: everything checked against the route's schemas. */
export interface ApiCall {
  readonly ops: Operations
  readonly caller: Caller
  readonly ingest: Ingest
  /** Does the caller's token have it too? */
  has(scope: ApiScope): boolean
  /** By name; texts, numbers, booleans as the schema says. */
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, never>>
  readonly body: never
  header(name: string): string | undefined
}

export interface ApiAnswer {
  readonly status?: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** One route: what OpenAPI says of it and what holds for a request are the same data. */
export interface ApiRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** OpenAPI's way: `/v1/subscriptions/{id}`. */
  readonly path: string
  readonly scope: ApiScope
  /** Reads the log, or much of Kafka: only some of these run at a time. */
  readonly scans?: boolean
  /** Callers bound to a tenant are refused. */
  readonly operatorsOnly?: boolean
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** Properties of the query string. */
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: JsonSchema
  /** The body may be left out. */
  readonly bodyOptional?: boolean
  /** Largest body, bytes; the server's default where it is not given. */
  readonly maxBodyBytes?: number
  /** `If-Match` must be there. */
  readonly ifMatch?: boolean
  /** Other headers it reads: name and meaning. */
  readonly headers?: Readonly<Record<string, string>>
  readonly status: number
  /** Name of a schema; null: no body. */
  readonly answer: string | null
  handle(call: ApiCall): Promise<ApiAnswer>
}
