import type * as kafkajs from 'kafkajs'

/** Types of the kafkajs internals that `src/kafka` leans on (2.2.4, pinned): the wire only. Nothing else imports them. */

export interface Encoder {
  readonly buffer: Buffer
  writeInt16(value: number): Encoder
  writeInt32(value: number): Encoder
  writeString(value: string | null): Encoder
  writeBuffer(value: Buffer): Encoder
}

export interface Protocol<T = unknown> {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    readonly expectResponse?: () => boolean
    encode(): Promise<Encoder>
  }
  readonly response: { decode(data: Buffer): Promise<T>; parse(data: T): Promise<T> }
  readonly requestTimeout?: number
  readonly logResponseError?: boolean
}

export interface ConnectionPool {
  readonly host: string
  readonly port: number
  readonly pool: readonly { readonly socket?: { destroy(error: Error): unknown } }[]
  send<T>(protocol: Protocol<T>): Promise<T>
}

export interface Broker {
  readonly nodeId: number | null
  readonly connectionPool: ConnectionPool
  isConnected(): boolean
  connect(): Promise<void>
  disconnect(): Promise<void>
  lookupRequest(apiKey: number, definition: unknown): (args: unknown) => Protocol<never>
}

export interface TxnContext {
  readonly transactionalId: string
  readonly producerId: string
  readonly producerEpoch: number
}

export interface ConnectionPoolBuilder {
  build(destination: { host: string; port: number }): Promise<ConnectionPool>
}

/** What `load.ts` gives out of the library after its patches are in place. */
export interface Library {
  readonly kafkajs: typeof kafkajs
  readonly Broker: new (options: {
    connectionPool: ConnectionPool
    logger: unknown
    nodeId: number | null
    authenticationTimeout: number
    allowAutoTopicCreation: boolean
  }) => Broker
  readonly connectionPoolBuilder: (options: object) => ConnectionPoolBuilder
  readonly socketFactory: () => kafkajs.ISocketFactory
  readonly createLogger: (options: { level: number; logCreator: kafkajs.logCreator }) => unknown
  readonly Encoder: new (size?: number) => Encoder
  readonly apiKeys: Readonly<Record<string, number>>
  readonly requests: Readonly<Record<string, unknown>>
  readonly createErrorFromCode: (code: number) => Error & { type: string; retriable: boolean }
}
