import { CommanderError } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { CliDeps } from './deps.ts'
import { exitCode, exitCodeOf } from './exit-code.ts'
import { buildProgram } from './program.ts'

/**
 * One call of `hooktide`. `args` without node and script. Never rejects: errors are printed to stderr and become exit
 * codes, by `deps.setExitCode`.
 */
export async function runCli(args: readonly string[], deps: CliDeps): Promise<void> {
  const program = buildProgram(deps)
  try {
    await program.parseAsync([...args], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) {
      // Help that was asked for and the version are no errors; commander has printed everything already.
      deps.setExitCode(error.exitCode === 0 ? exitCode.ok : exitCode.usage)
      return
    }
    const debug = program.opts<{ debug?: boolean }>().debug === true || args.includes('--debug')
    deps.stderr.write(errorText(error, debug))
    deps.setExitCode(exitCodeOf(error))
  }
}

/** Message, every detail, remedy; the stack, with its causes, only on demand. */
export function errorText(error: unknown, debug: boolean): string {
  const lines: string[] = []
  if (error instanceof HooktideError) {
    lines.push(`error: ${error.message}`)
    for (const detail of error.details) lines.push(`  ${detail}`)
    if (error.remedy !== undefined) lines.push(error.remedy)
  } else {
    lines.push(`error: ${error instanceof Error ? error.message : String(error)}`)
    if (!debug) lines.push('This is a bug of Hooktide. Run it again with --debug and report what it prints.')
  }
  if (debug) {
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      lines.push(`${at === error ? '' : 'caused by '}${at.stack ?? at.message}`)
    }
  }
  return `${lines.join('\n')}\n`
}
