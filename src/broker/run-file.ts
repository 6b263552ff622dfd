import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BrokerDeps, BrokerOptions } from './options.ts'
import { commandLine, endProcess, isAlive, startMark } from './processes.ts'

/** What a running local broker leaves beside its data, so that others find it and the next start can clean up. */
export interface RunFile {
  readonly pid: number
  readonly port: number
  readonly secure: Readonly<Record<string, string>>
  readonly owner: number
  /** Start time of the owner: a later process with its number is not it. */
  readonly ownerStarted: string | null
}

export const runFileName = 'broker.json'
export const propertiesName = 'server.properties'

export async function readRunFile(dataDir: string): Promise<RunFile | null> {
  try {
    const file = JSON.parse(await readFile(join(dataDir, runFileName), 'utf8')) as RunFile
    return Number.isInteger(file.pid) && Number.isInteger(file.port) && Number.isInteger(file.owner) ? file : null
  } catch {
    return null
  }
}

export async function writeRunFile(deps: BrokerDeps, dataDir: string, file: Omit<RunFile, 'owner' | 'ownerStarted'>) {
  const owner = deps.process.pid
  const whole: RunFile = { ...file, owner, ownerStarted: await startMark(owner) }
  const path = join(dataDir, runFileName)
  await writeFile(`${path}.new`, JSON.stringify(whole))
  await rename(`${path}.new`, path)
}

export async function removeRunFile(dataDir: string): Promise<void> {
  await rm(join(dataDir, runFileName), { force: true })
}

/** Is the process of this run file a broker on this very data directory? A reused number is not. */
export async function isOurBroker(deps: BrokerDeps, options: Pick<BrokerOptions, 'dataDir' | 'env'>, pid: number) {
  if (!isAlive(deps, pid)) return false
  const line = await commandLine(deps, options.env, pid)
  return line?.includes('kafka.Kafka') === true && line.includes(join(options.dataDir, propertiesName))
}

export async function ownerLives(deps: BrokerDeps, file: RunFile): Promise<boolean> {
  if (!isAlive(deps, file.owner)) return false
  return file.ownerStarted === null || file.ownerStarted === (await startMark(file.owner))
}

/** Ends a broker whose owner is gone. Nothing but a broker of this data directory is ever signalled. */
export async function endLeftover(deps: BrokerDeps, options: BrokerOptions, file: RunFile): Promise<void> {
  if (await isOurBroker(deps, options, file.pid)) {
    deps.progress(`Ending a Kafka broker (pid ${file.pid}) left behind by a crash …`)
    await endProcess(deps, file.pid, 5000)
  }
  await removeRunFile(options.dataDir)
}
