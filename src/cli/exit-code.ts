import { type ErrorCode, HooktideError } from '../core/error.ts'

/** Exit codes of every command (docs/cli.md). */
export const exitCode = {
  ok: 0,
  /** It failed, was not found, or is not as it should be (drift). */
  failed: 1,
  /** What was given can not be used: arguments, configuration, a file. The same call will never succeed. */
  usage: 2,
  /** A fault of Hooktide itself (`EX_SOFTWARE`); also of what gets past every handler (src/main.ts). */
  bug: 70,
} as const

/** Errors that only a change of what was given mends. */
const givenWrong: ReadonlySet<ErrorCode> = new Set([
  'usage',
  'config.invalid',
  'subscription.invalid',
  'event.invalid',
  'record.too-large',
])

export function exitCodeOf(error: unknown): number {
  if (!(error instanceof HooktideError)) return exitCode.bug
  return givenWrong.has(error.code) ? exitCode.usage : exitCode.failed
}
