import type { Clock } from '../../src/ports.ts'

/** The real time, for tests that talk to real processes. */
export const realClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}
