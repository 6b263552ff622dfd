import { codeOf, messageOf } from '../core/error.ts'
import type { Clock, Observer } from '../ports.ts'

interface FailedRequest {
  readonly id: string
  readonly method: string
  readonly routeOptions: { readonly url?: string | undefined }
}

const most = 20
const windowMs = 10_000

/** Failures of our own in the log: some at a time, then how many were left out. A broker that is away fails every request. */
export class FailureLog {
  readonly #clock: Clock
  readonly #observer: Observer
  #since = Number.NEGATIVE_INFINITY
  #count = 0

  constructor(clock: Clock, observer: Observer) {
    this.#clock = clock
    this.#observer = observer
  }

  note({ id, method, routeOptions }: FailedRequest, error: unknown): void {
    const nowMs = this.#clock.mono()
    if (nowMs - this.#since > windowMs) {
      if (this.#count > most) this.#observer.log('error', 'api.failures_left_out', { count: this.#count - most })
      this.#since = nowMs
      this.#count = 0
    }
    if (++this.#count > most) return
    const fields = {
      requestId: id,
      method,
      route: routeOptions.url ?? '',
      code: codeOf(error),
      error: messageOf(error),
    }
    this.#observer.log('error', 'api.failed', fields)
  }
}
