import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { type Environment, runCommand } from './command.ts'
import type { BrokerDeps } from './options.ts'
import { waitUntil } from './wait.ts'

export function isAlive(deps: BrokerDeps, pid: number): boolean {
  try {
    deps.system.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Command line of a running process, or null. */
export async function commandLine(deps: BrokerDeps, env: Environment, pid: number): Promise<string | null> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')
  } catch {
    // Not Linux, or gone.
    const ps = await runCommand(deps.clock, 'ps', ['-o', 'args=', '-p', String(pid)], { env, timeoutMs: 5000 })
    return ps.code === 0 ? ps.output : null
  }
}

/** What tells a process from a later one with the same number: its start time, where the system tells it. */
export async function startMark(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

export function signal(deps: BrokerDeps, pid: number, name: NodeJS.Signals): void {
  try {
    deps.system.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** SIGTERM, then SIGKILL after `graceMs`; resolves when the process is gone. */
export async function endProcess(deps: BrokerDeps, pid: number, graceMs: number): Promise<void> {
  const gone = () => !isAlive(deps, pid)
  signal(deps, pid, 'SIGTERM')
  if (await waitUntil(deps.clock, gone, { timeoutMs: graceMs, everyMs: 25 })) return
  signal(deps, pid, 'SIGKILL')
  await waitUntil(deps.clock, gone, { timeoutMs: 10_000, everyMs: 25 })
}

/**
 * A shell that waits on a pipe from us and runs `script` when the pipe closes, i.e. when this process ends in whatever
 * way, kill -9 included. Returns the function that calls it off.
 */
export function atOurEnd(env: Environment, script: string, args: readonly string[]): () => void {
  const shell = spawn('/bin/sh', ['-c', `read -r word; [ "$word" = off ] && exit 0; ${script}`, ...args], {
    env: env as NodeJS.ProcessEnv,
    stdio: ['pipe', 'ignore', 'ignore'],
    // Its own session: Ctrl-C at our terminal reaches us, and only us.
    detached: true,
  })
  shell.on('error', () => undefined)
  shell.stdin.on('error', () => undefined)
  shell.unref()
  ;(shell.stdin as unknown as { unref?(): void }).unref?.()
  return () => shell.stdin.end('off\n')
}
