import { createHash } from 'node:crypto'
import { cp, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { HooktideError } from '../core/error.ts'
import { findTool, runCommand } from './command.ts'
import { withLock } from './lock.ts'
import type { BrokerDeps, BrokerOptions } from './options.ts'

const copyTimeoutMs = 15 * 60_000

/** Folder of Kafka's jars for this pom; its name carries the pom's hash, so another version is another folder. */
export async function jarFolder(options: Pick<BrokerOptions, 'cacheDir' | 'pomFile'>): Promise<string> {
  const pom = await readFile(options.pomFile)
  return join(options.cacheDir, `kafka-${createHash('sha256').update(pom).digest('hex').slice(0, 12)}`)
}

/** A folder appears by one rename when everything is in it: if it exists, it is whole. */
export async function hasJars(folder: string): Promise<boolean> {
  return stat(folder).then(
    (info) => info.isDirectory(),
    () => false,
  )
}

/** Copies the jars unless they are there. Safe against other processes doing the same and against half-finished copies. */
export async function ensureJars(deps: BrokerDeps, options: BrokerOptions): Promise<string> {
  const folder = await jarFolder(options)
  if (await hasJars(folder)) return folder
  const waiting = 'Waiting for another process that fetches Kafka …'
  await withLock(deps, `${folder}.lock`, { timeoutMs: copyTimeoutMs, waiting }, async () => {
    if (await hasJars(folder)) return
    const mvn = await findTool(options.env, 'mvn')
    if (mvn === null) throw new HooktideError('broker.unavailable', 'no mvn on PATH', { remedy: 'Install Maven.' })
    await removeLeftovers(options.cacheDir, folder)
    const partial = `${folder}.partial-${deps.system.pid}`
    await mkdir(join(partial, 'jars'), { recursive: true })
    // Maven works on a copy: it must not write next to our pom.
    await cp(options.pomFile, join(partial, 'pom.xml'))
    deps.progress('Fetching Kafka by Maven (about 45 MB, once) …')
    const args = ['-B', '-q', '-f', join(partial, 'pom.xml'), 'dependency:copy-dependencies']
    const { code, output } = await runCommand(
      deps.clock,
      mvn,
      [...args, `-DoutputDirectory=${join(partial, 'jars')}`, '-DincludeScope=runtime'],
      { env: options.env, timeoutMs: copyTimeoutMs },
    )
    const jars = await readdir(join(partial, 'jars'))
    if (code !== 0 || !jars.some((name) => name.startsWith('kafka_'))) {
      await rm(partial, { recursive: true, force: true })
      throw new HooktideError('broker.unavailable', `Maven could not fetch Kafka (exit ${code ?? 'none'})`, {
        details: output.trim().split('\n').slice(-15),
        remedy: 'Check that Maven reaches its repository (proxy, ~/.m2/settings.xml), or set KAFKA_BROKERS.',
      })
    }
    await rename(join(partial, 'jars'), folder)
    await rm(partial, { recursive: true, force: true })
  })
  return folder
}

/** Under the lock nobody else is copying: whatever is partial is dead. */
async function removeLeftovers(cacheDir: string, folder: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const path = join(cacheDir, name)
    if (path.startsWith(`${folder}.partial-`)) await rm(path, { recursive: true, force: true })
  }
}
