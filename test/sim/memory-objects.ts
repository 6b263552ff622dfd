import { type Claim, claimProblem } from '../../src/core/claim.ts'
import type { ObjectFound, Objects } from '../../src/ports/objects.ts'
import type { FakeClock } from './fake-clock.ts'
import { type Random, randomStream } from './random.ts'
import type { SimProcess } from './sim-process.ts'

/** The object store of a world: slow at times, away for a while, and without some of what was claimed. */
export class MemoryObjects {
  readonly #clock: FakeClock
  readonly #random: Random
  readonly #bodies = new Map<string, Buffer>()
  away = false
  /** How long an answer takes; null: the dice decide. */
  tookMs: number | null = null
  asked = 0

  constructor(clock: FakeClock, seed: number) {
    this.#clock = clock
    this.#random = randomStream(seed, 'objects')
  }

  put(claim: Claim, body: Buffer): void {
    this.#bodies.set(claim.key, body)
  }

  /** As one process sees it: answers reach it only while it lives. */
  for(process: SimProcess): Objects {
    return {
      get: (claim) =>
        new Promise<ObjectFound>((resolve) => {
          this.asked++
          // One in fifty takes up to 4 s, longer than a process waits for it.
          const tookMs = this.#random() < 0.02 ? this.#random() * 4_000 : 1 + this.#random() * 40
          this.#clock.after(this.tookMs ?? tookMs, () => process.enter(() => resolve(this.#look(claim))))
        }),
      put: async (claim, body) => this.put(claim, body),
      removeBefore: async () => [],
      remove: async () => false,
      problem: async () => null,
    }
  }

  #look(claim: Claim): ObjectFound {
    if (this.away) return { t: 'unavailable', detail: 'away' }
    const body = this.#bodies.get(claim.key)
    if (body === undefined) return { t: 'missing' }
    const detail = claimProblem(claim, body)
    return detail === null ? { t: 'found', body } : { t: 'bad', detail }
  }
}
