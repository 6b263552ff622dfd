import type { Clock } from '../ports.ts'
import type { Cursor } from './cursor.ts'

/** How long a scan may take. When it is over, the scan ends and `at` says where the next one goes on. */
export class Patience {
  at: Cursor | null = null
  readonly #clock: Clock
  readonly #untilMs: number

  constructor({ clock, patienceMs }: { readonly clock: Clock; readonly patienceMs: number | null }) {
    this.#clock = clock
    this.#untilMs = patienceMs === null ? Number.POSITIVE_INFINITY : clock.mono() + patienceMs
  }

  /** Asked before a record is looked at. True: it is not to be looked at any more. */
  isOver(at: Cursor): boolean {
    if (this.#clock.mono() < this.#untilMs) return false
    this.at = at
    return true
  }
}
