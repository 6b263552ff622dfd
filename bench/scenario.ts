import type { Row, Target } from './result.ts'
import type { Stage } from './world.ts'

export interface Settings {
  readonly rounds: number
  /** Open POSTs, for scenarios that have one figure. */
  readonly concurrency: number
  /** Deliveries of a round; undefined: the scenario's own. */
  readonly deliveries: number | undefined
  /** Processes of Hooktide, where a scenario takes several. */
  readonly workers: number
  /** Of `scale`; undefined: all. */
  readonly dimensions: readonly string[] | undefined
  /** No further round begins after so long, ms. */
  readonly patienceMs: number
  readonly note: (line: string) => void
}

export interface Scenario {
  readonly name: string
  readonly about: string
  /** Needs no broker. */
  readonly bare?: true
  run(stage: Stage, settings: Settings): Promise<{ readonly rows: readonly Row[]; readonly targets: readonly Target[] }>
}
