import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { Log } from './log.ts'

const root = join(import.meta.dirname, '..', '..')
const main = join(root, 'bin', 'hooktide.js')
const compiled = join(root, '.hooktide', 'compiled')

export interface ServiceProcess {
  readonly pid: number
  readonly log: Log
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
  signal(name: NodeJS.Signals): void
}

const living = new Set<ServiceProcess>()

/** `hooktide …` as a process of its own. What it prints, on either stream, is its log. */
export function run(args: readonly string[], env: Readonly<Record<string, string>>): ServiceProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(HOOKTIDE|KAFKA|VITEST|NODE_ENV)/.test(name))
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...Object.fromEntries(inherited), NODE_COMPILE_CACHE: compiled, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log = new Log()
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => log.write(text))
  const started: ServiceProcess = {
    pid: child.pid ?? 0,
    log,
    ended: new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))),
    signal: (name) => void child.kill(name),
  }
  living.add(started)
  void started.ended.then(() => living.delete(started))
  return started
}

/** Nothing outlives a test file, whatever happened in it. */
export async function killAll(): Promise<void> {
  const left = [...living]
  for (const child of left) child.signal('SIGKILL')
  await Promise.all(left.map(({ ended }) => ended))
}
