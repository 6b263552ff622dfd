import type { Claim } from '../core/claim.ts'
import type { Clock } from '../ports.ts'

const firstMs = 500
const capMs = 15_000
/** One object that can't be read (S3 answers 403 for a missing one where listing is not allowed) is not the store's being away. */
const keysToBeAway = 3
const maxKeys = 10_000

interface Backoff {
  readonly failures: number
  readonly untilMs: number
}

/**
 * Who may ask the object store now. An object that could not be asked for is left alone for a time that doubles; when
 * several could not without one success between, all of the store is, and then one request at a time tries it.
 */
export class StoreOutage {
  readonly #clock: Clock
  readonly #keys = new Map<string, Backoff>()
  readonly #row = new Set<string>()
  #away: Backoff | null = null
  #probing = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** 0: it may be asked for now. Else when it is worth looking again. */
  waitMs({ key }: Claim): number {
    const nowMs = this.#clock.mono()
    const untilMs = Math.max(this.#keys.get(key)?.untilMs ?? 0, this.#away?.untilMs ?? 0)
    if (untilMs > nowMs) return untilMs - nowMs
    return this.#away !== null && this.#probing ? firstMs : 0
  }

  /** It is being asked for; told what came of it by `answered` or `failed`. */
  asked(): void {
    if (this.#away !== null) this.#probing = true
  }

  /** The store has answered, whatever it said. True: it was away before. */
  answered({ key }: Claim): boolean {
    const back = this.#away !== null
    this.#keys.delete(key)
    this.#row.clear()
    this.#away = null
    this.#probing = false
    return back
  }

  failed({ key }: Claim): void {
    const nowMs = this.#clock.mono()
    if (this.#keys.size >= maxKeys) this.#keys.clear()
    this.#keys.set(key, later(this.#keys.get(key), nowMs))
    if (this.#row.size < keysToBeAway) this.#row.add(key)
    // Those that were out already when it went away say nothing new.
    const isNew = this.#away === null ? this.#row.size >= keysToBeAway : this.#away.untilMs <= nowMs
    if (isNew) this.#away = later(this.#away, nowMs)
    this.#probing = false
  }
}

function later(before: Backoff | null | undefined, nowMs: number): Backoff {
  const failures = (before?.failures ?? 0) + 1
  return { failures, untilMs: nowMs + Math.min(capMs, firstMs * 2 ** Math.min(20, failures - 1)) }
}
