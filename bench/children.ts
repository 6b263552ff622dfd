import { type ChildProcess, type ForkOptions, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { within } from './clock.ts'

const children = new Set<ChildProcess>()
// However this process ends, short of SIGKILL, nothing stays behind.
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

function keep(child: ChildProcess): ChildProcess {
  children.add(child)
  child.once('exit', () => children.delete(child))
  child.once('error', () => children.delete(child))
  return child
}

/** A part of the bench itself; structured clone, so that arrays of numbers pass as they are. */
export function forkPart(file: string, options: ForkOptions = {}): ChildProcess {
  return keep(fork(file, { serialization: 'advanced', execArgv: [], ...options }))
}

export function spawnNode(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  stdout: number,
  stderr: number,
): ChildProcess {
  return keep(spawn(process.execPath, args, { env, stdio: ['ignore', stdout, stderr] }))
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** SIGTERM, and SIGKILL to what has not ended after `ms`. */
export async function end(child: ChildProcess, ms: number): Promise<void> {
  if (hasEnded(child)) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await within('end of a process', ms, exit).catch(() => child.kill('SIGKILL'))
  await exit
}

/** Parts of the bench listen to their channel only: a signal of the terminal is for us to handle. */
export async function dismiss(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const exit = once(child, 'exit')
  if (child.connected) child.disconnect()
  await within('end of a process', 2_000, exit).catch(() => child.kill('SIGKILL'))
}
