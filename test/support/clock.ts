import { systemClock } from '../../src/app.ts'

/** The real time, for tests that talk to real processes. */
export const realClock = systemClock
