import type { Clock } from '../ports.ts'

/** `url`: somebody else's broker; `docker`: a container of ours; `local`: a Java process of ours. */
export type BrokerKind = 'url' | 'docker' | 'local'

export interface BrokerOptions {
  /** Where data, the run file and logs of a broker of ours live. One directory, at most one broker. */
  readonly dataDir: string
  /** Where Kafka's jars are kept between runs; shared by every data directory. */
  readonly cacheDir: string
  /** `broker/pom.xml`, which pins Kafka's version. */
  readonly pomFile: string
  /** The whole environment: KAFKA_BROKERS, HOOKTIDE_BROKER, JAVA_HOME and PATH are read, the rest goes to the tools. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Client port on 127.0.0.1; without it the one of the last run if it is free, else any free one. */
  readonly port?: number
  /** Java heap, MB. */
  readonly heapMb?: number
  /** Broker settings that replace or extend ours. */
  readonly properties?: Readonly<Record<string, string>>
  /** Further listeners, users and the authorizer; only a local broker can have them. */
  readonly security?: BrokerSecurity
}

export interface BrokerSecurity {
  /** Listeners next to the plain one, each on a free port of its own. */
  readonly listeners: readonly SecureListener[]
  /** SCRAM users, created when the storage is formatted. */
  readonly scram?: readonly { readonly mechanism: ScramMechanism; readonly user: string; readonly password: string }[]
  /** PLAIN users. */
  readonly plain?: readonly { readonly user: string; readonly password: string }[]
  /** PEM files' contents; needed by every listener with TLS. */
  readonly tls?: { readonly ca: string; readonly certificate: string; readonly key: string }
  /** Deny whatever no ACL allows. `User:ANONYMOUS`, i.e. the plain loopback listener, stays allowed everything. */
  readonly authorizer?: boolean
}

export type ScramMechanism = 'SCRAM-SHA-256' | 'SCRAM-SHA-512'

export interface SecureListener {
  /** Upper case, e.g. `SECURE`. */
  readonly name: string
  readonly protocol: 'SSL' | 'SASL_SSL' | 'SASL_PLAINTEXT'
  readonly mechanisms?: readonly (ScramMechanism | 'PLAIN')[]
  /** Ask for a client certificate and refuse a client without one. */
  readonly clientCertificate?: boolean
}

export interface BrokerDeps {
  readonly clock: Clock
  /** One line for a person before each step that can take seconds. */
  readonly progress: (line: string) => void
  /** This process and the system's signals: `process.pid` and `process.kill`. */
  readonly system: { readonly pid: number; kill(pid: number, signal: NodeJS.Signals | 0): void }
}

export interface RunningBroker {
  /** For the client: `host:port[,host:port…]`. */
  readonly brokers: string
  readonly kind: BrokerKind
  /** False: someone else runs it and `stop` leaves it alone. */
  readonly owned: boolean
  readonly pid?: number
  /** `host:port` per secure listener. */
  readonly secure: Readonly<Record<string, string>>
  /** Stops what we started and waits for its end. Idempotent. */
  stop(): Promise<void>
}

/** A broker whose faults can be scripted: it comes back with the same data at the same port. */
export interface OwnBroker extends RunningBroker {
  /** SIGKILL, as in a crash. */
  kill(): Promise<void>
  /** Ends it if it runs (SIGTERM) and starts it again; resolves when it serves. */
  restart(): Promise<void>
  /** SIGSTOP: connections stay open, nothing is answered. */
  pause(): void
  resume(): void
}
