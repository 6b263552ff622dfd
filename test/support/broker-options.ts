import { join } from 'node:path'
import type { BrokerDeps, BrokerOptions } from '../../src/broker/options.ts'
import { realClock } from './clock.ts'

const root = join(import.meta.dirname, '..', '..')

/** Data of test brokers: one folder per test run, removed at its end. */
export const testRuns = join(root, '.hooktide', 'test')

export const brokerDeps: BrokerDeps = {
  clock: realClock,
  progress: (line) => process.stderr.write(`${line}\n`),
  system: { pid: process.pid, kill: (pid, signal) => void process.kill(pid, signal) },
}

export function brokerOptions(dataDir: string, more: Partial<BrokerOptions> = {}): BrokerOptions {
  const cacheDir = join(root, '.hooktide', 'cache')
  return { dataDir, cacheDir, pomFile: join(root, 'broker', 'pom.xml'), env: process.env, ...more }
}
