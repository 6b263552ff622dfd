import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { HooktideError } from '../core/error.ts'
import { answersKafka } from './handshake.ts'
import type { BrokerDeps, BrokerOptions, RunningBroker } from './options.ts'
import { commandLine, endProcess, isAlive, startMark } from './processes.ts'

/** What a running broker of ours leaves beside its data, so that others find it and the next start can clean up. */
export interface RunFile {
  readonly kind: 'local' | 'docker'
  /** Of the Java process; 0 for a container. */
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
  const owner = deps.system.pid
  const whole: RunFile = { ...file, owner, ownerStarted: await startMark(owner) }
  const path = join(dataDir, runFileName)
  await writeFile(`${path}.new`, JSON.stringify(whole))
  await rename(`${path}.new`, path)
}

export async function removeRunFile(dataDir: string): Promise<void> {
  await rm(join(dataDir, runFileName), { force: true })
}

/** Is the process of this run file a broker on this very data directory? A reused number is not. */
async function isOurBroker(deps: BrokerDeps, options: Pick<BrokerOptions, 'dataDir' | 'env'>, pid: number) {
  if (!isAlive(deps, pid)) return false
  const line = await commandLine(deps, options.env, pid)
  return line?.includes('kafka.Kafka') === true && line.includes(join(options.dataDir, propertiesName))
}

async function ownerLives(deps: BrokerDeps, file: RunFile): Promise<boolean> {
  if (!isAlive(deps, file.owner)) return false
  return file.ownerStarted === null || file.ownerStarted === (await startMark(file.owner))
}

/** A broker that another living process runs on this data directory, if it answers. Its `stop` does nothing. */
export async function findRunning(
  deps: BrokerDeps,
  options: Pick<BrokerOptions, 'dataDir' | 'env'>,
): Promise<RunningBroker | null> {
  const dataDir = resolve(options.dataDir)
  const file = await readRunFile(dataDir)
  if (file === null || !(await isHeld(deps, { dataDir, env: options.env }, file))) return null
  if (!(await answersKafka(deps.clock, '127.0.0.1', file.port, 5000))) return null
  const brokers = `127.0.0.1:${file.port}`
  const pid = file.kind === 'local' ? { pid: file.pid } : {}
  return { brokers, kind: file.kind, owned: false, ...pid, secure: file.secure, stop: async () => undefined }
}

/** Rejects when the data directory is in use; cleans up after an owner that is gone. */
export async function takeOver(deps: BrokerDeps, options: BrokerOptions): Promise<void> {
  const last = await readRunFile(options.dataDir)
  if (last === null) return
  if (await isHeld(deps, options, last)) {
    throw new HooktideError('broker.unavailable', `a broker of process ${last.owner} uses ${options.dataDir} already`, {
      remedy: `Use it with KAFKA_BROKERS=127.0.0.1:${last.port}, or end process ${last.owner}.`,
    })
  }
  await endLeftover(deps, options, last)
}

async function isHeld(deps: BrokerDeps, options: Pick<BrokerOptions, 'dataDir' | 'env'>, file: RunFile) {
  if (!(await ownerLives(deps, file))) return false
  return file.kind === 'docker' || (await isOurBroker(deps, options, file.pid))
}

/** Ends a broker whose owner is gone. Nothing but a broker of this data directory is ever signalled. */
async function endLeftover(deps: BrokerDeps, options: BrokerOptions, file: RunFile): Promise<void> {
  if (await isOurBroker(deps, options, file.pid)) {
    deps.progress(`Ending a Kafka broker (pid ${file.pid}) left behind by a crash …`)
    await endProcess(deps, file.pid, 5000)
  }
  await removeRunFile(options.dataDir)
}
