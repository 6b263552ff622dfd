import { spawn } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Clock } from '../ports.ts'

export interface CommandResult {
  /** Null: it could not be started, or its time was up. */
  readonly code: number | null
  readonly output: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Runs a tool to its end; never rejects. Output is stdout and stderr together, the last 64 KiB. */
export function runCommand(
  clock: Clock,
  file: string,
  args: readonly string[],
  options: { readonly env: Environment; readonly timeoutMs: number; readonly cwd?: string },
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      env: options.env as NodeJS.ProcessEnv,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    })
    let output = ''
    let timedOut = false
    const cancel = clock.after(options.timeoutMs, () => {
      timedOut = true
      child.kill('SIGKILL')
      // A grandchild may hold the pipes open; the result must not wait for it.
      child.stdout.destroy()
      child.stderr.destroy()
    })
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-65_536)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.once('error', (error) => {
      cancel()
      resolve({ code: null, output: error.message })
    })
    child.once('close', (code) => {
      cancel()
      resolve(timedOut ? { code: null, output: `no answer within ${options.timeoutMs / 1000} s` } : { code, output })
    })
  })
}

/** Full path of a tool on PATH, or null. */
export async function findTool(env: Environment, name: string): Promise<string | null> {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    if (folder === '') continue
    const path = join(folder, name)
    if (await isExecutable(path)) return path
  }
  return null
}

export async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
