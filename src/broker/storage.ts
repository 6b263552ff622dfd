import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HooktideError } from '../core/error.ts'
import { runCommand } from './command.ts'
import type { BrokerDeps, BrokerOptions } from './options.ts'
import { propertiesName } from './run-file.ts'

const marker = 'formatted'

export function logDirOf(dataDir: string): string {
  return join(dataDir, 'data')
}

/**
 * KRaft storage, formatted once. Our marker is written after the format has succeeded: data without it was never served
 * and is dropped; a marker without `meta.properties` is damage, and the data is put aside, not deleted.
 */
export async function ensureStorage(deps: BrokerDeps, options: BrokerOptions, java: JavaCall): Promise<void> {
  const logDir = logDirOf(options.dataDir)
  const formatted = await exists(join(options.dataDir, marker))
  if (formatted && (await isWhole(logDir))) return
  if (formatted && (await exists(logDir))) {
    const aside = await freeName(`${logDir}.damaged`)
    await rename(logDir, aside)
    deps.progress(`The broker's data was damaged (no meta.properties); it is now in ${aside}. Starting empty.`)
  }
  await rm(join(options.dataDir, marker), { force: true })
  await rm(logDir, { recursive: true, force: true })
  const users = (options.security?.scram ?? []).flatMap(({ mechanism, user, password }) => [
    '--add-scram',
    `${mechanism}=[name=${user},password=${password}]`,
  ])
  const format = ['kafka.tools.StorageTool', 'format', '-t', clusterId(), '-c', join(options.dataDir, propertiesName)]
  const args = [...java.args, '-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', ...format, ...users]
  const { code, output } = await runCommand(deps.clock, java.path, args, { env: options.env, timeoutMs: 120_000 })
  if (code !== 0) {
    throw new HooktideError('broker.unavailable', 'Kafka could not format its storage', {
      details: output.trim().split('\n').slice(-15),
      remedy: `Check that ${options.dataDir} is writable and the disk is not full.`,
    })
  }
  await writeFile(join(options.dataDir, marker), '')
}

export interface JavaCall {
  readonly path: string
  /** Class path and logging. */
  readonly args: readonly string[]
}

/** 16 random bytes as Kafka's Uuid prints them; one beginning with `-` would read as an option. */
function clusterId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? clusterId() : id
}

async function isWhole(logDir: string): Promise<boolean> {
  const text = await readFile(join(logDir, 'meta.properties'), 'utf8').catch(() => '')
  return /^cluster\.id=\S+$/m.test(text) && /^node\.id=\d+$/m.test(text)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function freeName(base: string): Promise<string> {
  for (let n = 1; ; n++) {
    const name = `${base}-${n}`
    if (!(await exists(name))) return name
  }
}
