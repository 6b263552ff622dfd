import { HooktideError } from '../core/error.ts'
import type { Clock } from '../ports.ts'
import { troubleOf } from './errors.ts'

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve)
  })
}

/**
 * Rejects `broker.timeout` when `promise` is not settled at `deadlineMs` (mono). kafkajs's own timeouts do not cover
 * everything (a frozen broker, a half-open socket, its locks), so every call to a broker goes through here.
 */
export async function within<T>(clock: Clock, deadlineMs: number, operation: string, promise: Promise<T>): Promise<T> {
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(Math.max(0, deadlineMs - clock.mono()), () => {
      reject(new HooktideError('broker.timeout', `Kafka did not answer in time: ${operation}`))
    })
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    cancel()
  }
}

/** A topic just created is unknown to some brokers for a moment; after this it counts as missing. */
const missingTopicMs = 5_000

/**
 * Repeats `attempt` through everything that passes by itself until `deadlineMs` (mono). `recover` runs before each
 * repetition (refresh metadata, reconnect). Throws the last error as it came, or `broker.timeout` while an attempt hangs.
 */
export async function insist<T>(
  clock: Clock,
  deadlineMs: number,
  operation: string,
  attempt: () => Promise<T>,
  recover: (error: unknown) => void = () => {},
): Promise<T> {
  const startMs = clock.mono()
  let delayMs = 0
  let last: unknown
  for (;;) {
    try {
      return await within(clock, deadlineMs, operation, attempt())
    } catch (error) {
      const trouble = troubleOf(error)
      // Time ran out during a repetition: what it was repeated for says more.
      if (trouble === 'fatal') throw last !== undefined && isTimeout(error) ? last : error
      last = error
      recover(error)
      // Ending a transaction takes the broker a few ms; for the rest, hammering a broker that starts helps nobody.
      const floorMs = trouble === 'concurrent' ? 1 : 20
      const capMs = trouble === 'concurrent' ? 20 : 500
      delayMs = Math.min(capMs, Math.max(floorMs, delayMs * 1.5))
      const nowMs = clock.mono()
      const missing = error instanceof HooktideError && error.code === 'topic.missing'
      if (nowMs + delayMs >= (missing ? Math.min(deadlineMs, startMs + missingTopicMs) : deadlineMs)) throw error
      await sleep(clock, delayMs)
    }
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof HooktideError && error.code === 'broker.timeout'
}
