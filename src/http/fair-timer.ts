import type { Clock } from '../ports.ts'

/** Later than this and it was this process that stood still, not the endpoint. */
const lateMs = 50

/**
 * `clock.after`, but a timer that fires late gives one more turn of the event loop first: timers run before arrived bytes
 * are read, so after a stall of our own an answer may already be there, and calling it a time-out would be wrong.
 */
export function fairAfter(clock: Clock, ms: number, fn: () => void): () => void {
  const start = clock.mono()
  let stop = clock.after(ms, () => {
    if (clock.mono() - start - ms <= lateMs) fn()
    else stop = clock.after(1, fn)
  })
  return () => stop()
}
