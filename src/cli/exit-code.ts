/** Exit codes of every command (docs/cli.md). */
export const exitCode = {
  ok: 0,
  /** It failed, was not found, or is not as it should be (drift). */
  failed: 1,
  /** The command line can not be understood. */
  usage: 2,
} as const
