import { join } from 'node:path'
import type { Clock } from '../ports.ts'
import { type Environment, findTool, isExecutable, runCommand } from './command.ts'

export type Finding<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string }

export const leastJava = 17

/** A Java that Kafka 4 runs on: JAVA_HOME first, then PATH. */
export async function findJava(clock: Clock, env: Environment): Promise<Finding<string>> {
  const home = env.JAVA_HOME === undefined || env.JAVA_HOME === '' ? null : join(env.JAVA_HOME, 'bin', 'java')
  const path = home !== null && (await isExecutable(home)) ? home : await findTool(env, 'java')
  if (path === null) return { ok: false, reason: `no java on PATH${home === null ? '' : ` or in JAVA_HOME (${home})`}` }
  const { code, output } = await runCommand(clock, path, ['-version'], { env, timeoutMs: 20_000 })
  if (code !== 0) return { ok: false, reason: `${path} -version failed: ${firstLine(output)}` }
  const version = javaVersion(output)
  if (version === null) return { ok: false, reason: `${path} tells no version: ${firstLine(output)}` }
  if (version < leastJava) return { ok: false, reason: `${path} is Java ${version}; Kafka needs ${leastJava} or newer` }
  return { ok: true, value: path }
}

/** Feature release out of `java -version`: 17 for "17.0.15", 8 for "1.8.0_402". */
export function javaVersion(output: string): number | null {
  const match = /version "(?:1\.)?(\d+)/.exec(output)
  return match === null ? null : Number(match[1])
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0] ?? ''
}
