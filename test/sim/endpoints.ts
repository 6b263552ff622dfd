import type { FailureClass } from '../../src/core/outcome.ts'
import type { Random } from './random.ts'

/** What an endpoint does with one POST. */
export type Answer =
  | { readonly t: 'status'; readonly status: number; readonly afterMs: number; readonly retryAfter?: string }
  /** The connection ends without a status; `arrived`: the body was read before, so the receiver may have acted on it. */
  | { readonly t: 'failure'; readonly class: FailureClass; readonly afterMs: number; readonly arrived: boolean }
  /** Nothing comes until the sender's deadline. */
  | { readonly t: 'hang' }

export interface Request {
  /** POSTs to this endpoint so far, this one included. */
  readonly n: number
  readonly deliveryId: string
  readonly attempt: number
  readonly nowMs: number
  readonly random: Random
}

export type Endpoint = (request: Request) => Answer

const usualMs = 5

export function delivers(afterMs = usualMs): Endpoint {
  return () => ({ t: 'status', status: 200, afterMs })
}

/** Answers within [low, high] ms. */
export function slow(lowMs: number, highMs: number): Endpoint {
  return ({ random }) => ({ t: 'status', status: 200, afterMs: lowMs + random() * (highMs - lowMs) })
}

export function fails(status: number, afterMs = usualMs): Endpoint {
  return () => ({ t: 'status', status, afterMs })
}

export function gone(): Endpoint {
  return fails(410)
}

export function hangs(): Endpoint {
  return () => ({ t: 'hang' })
}

export function breaks(failure: FailureClass = 'reset', arrived = false): Endpoint {
  return () => ({ t: 'failure', class: failure, afterMs: usualMs, arrived })
}

/** Lets `burst` POSTs through per window, answers 429 with the seconds left to the rest. */
export function rateLimits(burst: number, windowMs: number): Endpoint {
  let openedMs = Number.NEGATIVE_INFINITY
  let used = 0
  return ({ nowMs }) => {
    if (nowMs - openedMs >= windowMs) {
      openedMs = nowMs
      used = 0
    }
    if (++used <= burst) return { t: 'status', status: 200, afterMs: usualMs }
    const retryAfter = String(Math.max(1, Math.ceil((openedMs + windowMs - nowMs) / 1_000)))
    return { t: 'status', status: 429, afterMs: usualMs, retryAfter }
  }
}

/** Each POST fails with the given chance, in one of many ways. */
export function flaky(chance: number): Endpoint {
  const bad: readonly Answer[] = [
    { t: 'status', status: 503, afterMs: usualMs },
    { t: 'status', status: 500, afterMs: 80 },
    { t: 'status', status: 429, afterMs: usualMs, retryAfter: '1' },
    { t: 'status', status: 503, afterMs: usualMs, retryAfter: '5' },
    { t: 'failure', class: 'reset', afterMs: 20, arrived: true },
    { t: 'failure', class: 'connect', afterMs: usualMs, arrived: false },
  ]
  return ({ random }) => {
    if (random() >= chance) return { t: 'status', status: 200, afterMs: 1 + random() * 20 }
    return bad[Math.floor(random() * bad.length)] as Answer
  }
}

/** Fails each delivery's first `times` attempts, then delivers. */
export function failsFirst(times: number, status = 503): Endpoint {
  return ({ attempt }) => ({ t: 'status', status: attempt <= times ? status : 200, afterMs: usualMs })
}

/** `before` until the clock shows `untilMs`, then `after`: an outage that ends. */
export function changes(before: Endpoint, untilMs: number, after: Endpoint): Endpoint {
  return (request) => (request.nowMs < untilMs ? before(request) : after(request))
}
