import type { Config, LoadedConfig } from '../config.ts'
import type { CallApi } from '../operations/api-client.ts'
import type { Cluster } from '../operations/cluster.ts'
import type { StateTools } from '../operations/state-tools.ts'
import type { EndpointTools, SecretTools } from '../operations/tools.ts'
import type { Objects } from '../ports/objects.ts'
import type { Clock } from '../ports.ts'

export type Env = Readonly<Record<string, string | undefined>>

export interface Output {
  /** Text, or bytes as they are. */
  write(data: string | Buffer): void
  readonly isTTY: boolean
  /** Width of the terminal; 100 where there is none. */
  readonly columns: number
}

export type Role = 'router' | 'deliverer' | 'projector' | 'api'

export interface ServiceOptions {
  readonly loaded: LoadedConfig
  readonly roles: readonly Role[]
  /** Processes of it on this machine. */
  readonly workers: number
}

export interface DemoOptions {
  /** Print the summary as JSON. */
  readonly json: boolean
  /** How many events; null: the demo's own number. */
  readonly events: number | null
}

export interface RehearsalOptions {
  /** Of each phase. */
  readonly events: number
  /** Configuration file; undefined: the defaults. */
  readonly path: string | undefined
}

export interface RehearsalSummary {
  readonly ok: boolean
  /** Of its topics. */
  readonly prefix: string
  readonly events: number
  readonly firstDeliveryS: number | null
  readonly recoveryS: number | null
  readonly recoveredPerSecond: number | null
  readonly redriveS: number | null
  readonly checks: readonly { readonly what: string; readonly ok: boolean; readonly found: string }[]
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
  /** The delivery state of this configuration, for one command. */
  state(config: Config): StateTools
  readonly endpoints: EndpointTools
  /** The object store of this configuration; null: there is none. */
  objects(config: Config): Objects | null
  /** Text behind an http URL (an instance's /metrics); rejects when there is none within the time. */
  fetchText(url: string, timeoutMs: number): Promise<string>
  /** One request to the API of a service. */
  callApi: CallApi
  /** Runs the service until `signal` is aborted and everything is drained. */
  startService(options: ServiceOptions): Promise<void>
  /** Resolves to whether the demo found everything delivered, in order and signed. */
  runDemo(options: DemoOptions): Promise<boolean>
  /** Rejects when the rehearsal could not be played. */
  rehearse(options: RehearsalOptions): Promise<RehearsalSummary>
  setExitCode(code: number): void
}
