import type { FakeClock } from './fake-clock.ts'
import type { FaultDice } from './faults.ts'
import { ProtocolError } from './protocol.ts'
import type { Random } from './random.ts'
import type { SimProcess } from './sim-process.ts'

export interface Latency {
  readonly minMs: number
  readonly maxMs: number
  /** One call in so many takes up to `tailMs`. */
  readonly tailChance: number
  readonly tailMs: number
}

export const defaultLatency: Latency = { minMs: 0.2, maxMs: 2, tailChance: 0.01, tailMs: 60 }

export function latencyOf(random: Random, latency: Latency): number {
  if (random() < latency.tailChance) return latency.maxMs + random() * (latency.tailMs - latency.maxMs)
  return latency.minMs + random() * (latency.maxMs - latency.minMs)
}

export interface LinkWorld {
  readonly clock: FakeClock
  readonly dice: FaultDice
  readonly latencyRandom: Random
  readonly latency: Latency
  crash(processId: string): void
}

/**
 * The wire between one process and the broker. A request takes time to arrive and its answer takes time to come back; the
 * process can die before the one and after the other, and what is on the wire of a dead process may or may not arrive.
 */
export class Link {
  readonly process: SimProcess
  readonly #world: LinkWorld

  constructor(process: SimProcess, world: LinkWorld) {
    this.process = process
    this.#world = world
  }

  /** Never settles when the process is dead, or dies meanwhile. */
  call<T>(execute: () => T | Promise<T>): Promise<T> {
    const { clock, dice, latencyRandom, latency } = this.#world
    const { process } = this
    return new Promise<T>((resolve, reject) => {
      if (!process.alive) return
      if (dice.hit('crash', process.id)) {
        this.#world.crash(process.id)
        if (dice.stream('wire')() < 0.5) return
      }
      const fails = dice.hit('callFails', process.id)
      const answer = (settle: () => void) => {
        clock.after(latencyOf(latencyRandom, latency), () => {
          if (process.alive && dice.hit('crash', process.id)) this.#world.crash(process.id)
          process.enter(settle)
        })
      }
      clock.after(latencyOf(latencyRandom, latency), () => {
        if (!process.alive && dice.stream('wire')() < 0.5) return
        if (fails) {
          answer(() => reject(new ProtocolError('network')))
          return
        }
        let result: T | Promise<T>
        try {
          result = execute()
        } catch (error) {
          answer(() => reject(error))
          return
        }
        if (result instanceof Promise) {
          result.then(
            (value) => answer(() => resolve(value)),
            (error) => answer(() => reject(error)),
          )
        } else {
          const value = result
          answer(() => resolve(value))
        }
      })
    })
  }

  /** Time passes in the process. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.process.after(ms, resolve))
  }
}
