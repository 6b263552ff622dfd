import type { Config, LoadedConfig } from '../config.ts'
import type { EndpointCheck } from '../core/endpoint-check.ts'
import type { InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { MasterKey, MasterKeys, SealedSecret, SecretPlain } from '../core/sealed-secret.ts'
import type { Secret } from '../core/secret.ts'
import type { Clock, Kafka, TopicAdmin } from '../ports.ts'

export type Env = Readonly<Record<string, string | undefined>>

export interface Output {
  /** Text, or bytes as they are. */
  write(data: string | Buffer): void
  readonly isTTY: boolean
  /** Width of the terminal; 100 where there is none. */
  readonly columns: number
}

/** One Kafka cluster, for one command. */
export interface Cluster {
  readonly kafka: Kafka
  readonly admin: TopicAdmin
  close(): Promise<void>
}

export type Role = 'router' | 'deliverer'

export interface ServiceOptions {
  readonly loaded: LoadedConfig
  readonly roles: readonly Role[]
}

export interface DemoOptions {
  /** Print the summary as JSON. */
  readonly json: boolean
  /** How many events; null: the demo's own number. */
  readonly events: number | null
}

/** What commands need to know of secrets without seeing how they are kept. */
export interface SecretTools {
  /** The keys behind `secrets.masterKeyRef`. */
  masterKeys(config: Config): Result<MasterKeys>
  newSigningSecret(): Secret
  seal(plain: SecretPlain, master: MasterKey): SealedSecret
  /** Says of a reference whether it can be resolved here; `sealed` are the records of the `secrets` topic, in log order. */
  resolver(config: Config, sealed: Iterable<Pick<InRecord, 'key' | 'value'>>): (ref: string) => Result<unknown>
}

/** What commands need to know of endpoints: the service's own rules and ways, asked once. */
export interface EndpointTools {
  /** `connect`: what a connection comes to, too; nothing is sent over it. Never rejects for what is wrong with the endpoint. */
  check(config: Config, url: string, options?: { readonly connect?: boolean }): Promise<EndpointCheck>
}

/** Everything a command takes from the edge of the process. Tests bring their own. */
export interface CliDeps {
  readonly env: Env
  readonly stdin: AsyncIterable<Buffer | string> & { readonly isTTY?: boolean | undefined }
  readonly stdout: Output
  readonly stderr: Output
  readonly clock: Clock
  /** Aborted by SIGINT and SIGTERM: commands that run on end then, with what they know so far. */
  readonly signal: AbortSignal
  readonly runtime: { readonly node: string; readonly platform: string }
  /** Rejects with a HooktideError when there is no cluster to talk to. */
  connect(config: Config): Promise<Cluster>
  readonly secrets: SecretTools
  readonly endpoints: EndpointTools
  /** Text behind an http URL (an instance's /metrics); rejects when there is none within the time. */
  fetchText(url: string, timeoutMs: number): Promise<string>
  /** Runs the service until `signal` is aborted and everything is drained. */
  startService(options: ServiceOptions): Promise<void>
  /** Resolves to whether the demo found everything delivered, in order and signed. */
  runDemo(options: DemoOptions): Promise<boolean>
  setExitCode(code: number): void
}
