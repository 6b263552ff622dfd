import type { ISocketFactory, Kafka, logCreator, SASLOptions } from 'kafkajs'
import type { Clock, Observer } from '../ports.ts'
import { decodeLimit } from './codecs.ts'
import type { GroupSettings } from './group-settings.ts'
import { givenUp, Link } from './link.ts'
import { library } from './load.ts'
import { Reach } from './reach.ts'

export interface KafkaOptions {
  /** `host:port` of some brokers, for the first contact. */
  readonly brokers: readonly string[]
  readonly clientId: string
  /** PEM texts; `{}` is TLS with the system's CAs. Absent: plain text. */
  readonly ssl?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined
  readonly sasl?:
    | {
        readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
        readonly username: string
        readonly password: string
      }
    | undefined
  /** TCP and TLS set-up. Default 3 s. */
  readonly connectTimeoutMs?: number | undefined
  /** One request on the wire. Default 15 s. */
  readonly requestTimeoutMs?: number | undefined
  /** A send, a transaction, a read with all its repetitions. Default 30 s. */
  readonly deadlineMs?: number | undefined
  /** The broker aborts a transaction that is open for longer, e.g. of a crashed owner. Default 15 s. */
  readonly transactionTimeoutMs?: number | undefined
  /** What one compressed batch may unpack to, process-wide. Default 32 MiB. */
  readonly maxUnpackedBytes?: number | undefined
  /** Times and sizes of group consumers; see group-settings.ts for the defaults. */
  readonly group?: Partial<GroupSettings> | undefined
  /** Opens the sockets; tests put a proxy in between. */
  readonly socketFactory?: ISocketFactory | undefined
}

export interface KafkaDeps {
  readonly clock: Clock
  readonly observer: Observer
}

/** Who a kafkajs client is for: it decides how long kafkajs itself retries. */
export type Role = 'consumer' | 'admin'

const retries = {
  // Through any outage: a watchdog above decides when to give up (design section 5, row 16).
  consumer: { initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 1.5, factor: 0.2, retries: 1_000_000 },
  // An operator waits in front of it.
  admin: { initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2, factor: 0.2, retries: 8 },
} as const

/** Makes connections to one Kafka cluster, all with the same address, identity and time limits. */
export class KafkaClient {
  readonly options: KafkaOptions
  readonly deps: KafkaDeps
  readonly deadlineMs: number
  readonly transactionTimeoutMs: number
  readonly #reach: Reach

  constructor(options: KafkaOptions, deps: KafkaDeps) {
    this.options = options
    this.deps = deps
    this.#reach = new Reach(deps.clock, deps.observer)
    this.deadlineMs = options.deadlineMs ?? 30_000
    this.transactionTimeoutMs = options.transactionTimeoutMs ?? 15_000
    if (options.maxUnpackedBytes !== undefined) decodeLimit.maxBytes = options.maxUnpackedBytes
  }

  /** A fresh instance each time: two consumers of one group in one `Kafka` instance mix up their offsets (row 19). */
  kafka(role: Role): Kafka {
    const { sasl, socketFactory } = this.options
    return new library.kafkajs.Kafka({
      ...this.#connection(),
      ...(sasl === undefined ? {} : { sasl: { ...sasl } as SASLOptions }),
      ...(socketFactory === undefined ? {} : { socketFactory }),
      brokers: [...this.options.brokers],
      clientId: this.options.clientId,
      retry: retries[role],
      logLevel: library.kafkajs.logLevel.WARN,
      logCreator: this.#logCreator(),
    })
  }

  /** Connections of our own to the same cluster: what producers, readers and offset look-ups run on. */
  link(): Link {
    const logger = library.createLogger({ level: library.kafkajs.logLevel.WARN, logCreator: this.#logCreator() })
    const { sasl, brokers, clientId } = this.options
    const pools = library.connectionPoolBuilder({
      ...this.#connection(),
      sasl: sasl === undefined ? undefined : { ...sasl },
      socketFactory: this.options.socketFactory ?? library.socketFactory(),
      brokers: [...brokers],
      clientId,
      logger,
      maxInFlightRequests: null,
      instrumentationEmitter: null,
    })
    return new Link({ seeds: brokers, pools, logger, clock: this.deps.clock, reach: this.#reach })
  }

  #connection() {
    const { ssl } = this.options
    return {
      ...(ssl === undefined ? {} : { ssl: { ...ssl } }),
      connectionTimeout: this.options.connectTimeoutMs ?? 3_000,
      authenticationTimeout: 10_000,
      reauthenticationThreshold: 10_000,
      requestTimeout: this.options.requestTimeoutMs ?? 15_000,
      enforceRequestTimeout: true,
    }
  }

  /** kafkajs logs one line per failed attempt and connection. What matters of them is thrown too, or told by `Reach`. */
  #logCreator(): logCreator {
    const { observer } = this.deps
    return () =>
      ({ namespace, log }) => {
        if (log.message.includes(givenUp)) return
        const broker = log.broker as string | undefined
        const lost = namespace === 'Connection' && /^Connection (error|timeout)/.test(log.message)
        if (lost && broker !== undefined) this.#reach.failed(broker, log.message)
        observer.log('debug', 'kafka.client', { message: log.message, part: namespace, broker })
      }
  }
}
