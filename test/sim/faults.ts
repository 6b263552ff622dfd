import { type Random, randomStream } from './random.ts'

/** Chances per opportunity, 0 to 1. Each has its own dice, so each can be switched off without touching the others. */
export interface CallFaults {
  /** The process dies at this await: before its request left, or after the broker did it and before the answer. */
  readonly crash: number
  /** A request fails and nothing happened. */
  readonly callFails: number
  /** A plain send fails although everything is stored. */
  readonly sendStored: number
  /** A plain send fails with only a part stored. */
  readonly sendPartly: number
  /** A plain send fails, and lands later, also after its repeat. */
  readonly sendLate: number
  /** Somebody takes the transactional id for a moment (or the transaction timed out): `producer.fenced`. */
  readonly fenced: number
  /** The commit fails: aborted. */
  readonly lostCommit: number
  /** The commit succeeded, the client sees a failure. */
  readonly ambiguousCommit: number
  /** The client sees a failure, the commit request is still on its way: it succeeds unless a fence comes first. */
  readonly lateCommit: number
  /** A fetched batch comes again. */
  readonly duplicateFetch: number
  /** Somebody else's markers before an append. */
  readonly gap: number
}

/** Mean ms between two events of a kind while faults are on; 0: never. */
export interface WorldFaults {
  readonly leaderMoveEveryMs: number
  readonly coordinatorMoveEveryMs: number
  readonly stallEveryMs: number
  readonly expireEveryMs: number
  readonly clockJumpEveryMs: number
  readonly compactEveryMs: number
  /** Loses data on purpose: what was lost is in `MemoryBroker.losses`. */
  readonly retentionEveryMs: number
}

export type Faults = CallFaults & WorldFaults
export type CallFault = keyof CallFaults

export const noFaults: Faults = Object.freeze({
  crash: 0,
  callFails: 0,
  sendStored: 0,
  sendPartly: 0,
  sendLate: 0,
  fenced: 0,
  lostCommit: 0,
  ambiguousCommit: 0,
  lateCommit: 0,
  duplicateFetch: 0,
  gap: 0,
  leaderMoveEveryMs: 0,
  coordinatorMoveEveryMs: 0,
  stallEveryMs: 0,
  expireEveryMs: 0,
  clockJumpEveryMs: 0,
  compactEveryMs: 0,
  retentionEveryMs: 0,
})

/** A moderate dose of everything; retention is left out because it loses data by design. */
export const everyFault: Faults = Object.freeze({
  crash: 0.0005,
  callFails: 0.005,
  sendStored: 0.01,
  sendPartly: 0.01,
  sendLate: 0.01,
  fenced: 0.003,
  lostCommit: 0.01,
  ambiguousCommit: 0.01,
  lateCommit: 0.01,
  duplicateFetch: 0.05,
  gap: 0.05,
  leaderMoveEveryMs: 20_000,
  coordinatorMoveEveryMs: 30_000,
  stallEveryMs: 30_000,
  expireEveryMs: 45_000,
  clockJumpEveryMs: 60_000,
  compactEveryMs: 5_000,
  retentionEveryMs: 0,
})

/** Turns on a random half of `from`: what a simulation seed does. */
export function someFaults(seed: number, from: Faults = everyFault): Faults {
  const random = randomStream(seed, 'fault selection')
  const chosen: Record<string, number> = {}
  for (const [name, value] of Object.entries(from)) chosen[name] = random() < 0.5 ? value : 0
  return chosen as unknown as Faults
}

interface Script {
  readonly fault: CallFault
  readonly processId: string
  /** 1: the next opportunity. */
  countdown: number
}

/** Decides at every opportunity; scripted faults come before random ones. */
export class FaultDice {
  readonly #seed: number
  readonly #streams = new Map<string, Random>()
  readonly #scripts: Script[] = []
  readonly #perProcess = new Map<string, Partial<Faults>>()
  #faults: Faults
  readonly #onHit: (fault: CallFault, processId: string) => void

  constructor(seed: number, faults: Faults, onHit: (fault: CallFault, processId: string) => void = () => {}) {
    this.#seed = seed
    this.#onHit = onHit
    this.#faults = faults
  }

  get faults(): Faults {
    return this.#faults
  }

  /** From now on nothing goes wrong any more, except what is scripted. */
  quiet(): void {
    this.#faults = noFaults
    this.#perProcess.clear()
  }

  setFor(processId: string, faults: Partial<Faults>): void {
    this.#perProcess.set(processId, faults)
  }

  /** The `nth` opportunity from now (1: the next) in this process goes wrong. */
  script(fault: CallFault, processId: string, nth = 1): void {
    this.#scripts.push({ fault, processId, countdown: nth })
  }

  hit(fault: CallFault, processId: string): boolean {
    let scripted = false
    for (let i = this.#scripts.length - 1; i >= 0; i--) {
      const script = this.#scripts[i] as Script
      if (script.fault !== fault || script.processId !== processId) continue
      if (--script.countdown > 0) continue
      this.#scripts.splice(i, 1)
      scripted = true
    }
    const chance = this.#perProcess.get(processId)?.[fault] ?? this.#faults[fault]
    const hit = scripted || (chance > 0 && this.stream(fault)() < chance)
    if (hit) this.#onHit(fault, processId)
    return hit
  }

  stream(name: string): Random {
    let stream = this.#streams.get(name)
    if (stream === undefined) {
      stream = randomStream(this.#seed, `fault ${name}`)
      this.#streams.set(name, stream)
    }
    return stream
  }
}
