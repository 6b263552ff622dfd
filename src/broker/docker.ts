import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { HooktideError } from '../core/error.ts'
import { findTool, runCommand } from './command.ts'
import { freePorts } from './free-ports.ts'
import { answersKafka } from './handshake.ts'
import type { Finding } from './java.ts'
import type { BrokerDeps, BrokerOptions, OwnBroker } from './options.ts'
import { atOurEnd } from './processes.ts'
import { singleNode } from './properties.ts'
import { removeRunFile, takeOver, writeRunFile } from './run-file.ts'
import { waitUntil } from './wait.ts'

/** Same version as broker/pom.xml; a test compares. */
export const kafkaImage = 'apache/kafka:4.4.0'

const pullTimeoutMs = 15 * 60_000
const commandTimeoutMs = 60_000
const startTimeoutMs = 120_000

/** The docker CLI whose daemon answers. */
export async function findDocker(deps: BrokerDeps, options: BrokerOptions): Promise<Finding<string>> {
  const docker = await findTool(options.env, 'docker')
  if (docker === null) return { ok: false, reason: 'no docker on PATH' }
  const args = ['version', '--format', '{{.Server.Version}}']
  const { code, output } = await runCommand(deps.clock, docker, args, { env: options.env, timeoutMs: 10_000 })
  if (code === 0) return { ok: true, value: docker }
  return { ok: false, reason: `the daemon does not answer: ${output.trim().split('\n').at(-1) ?? ''}` }
}

/** Container and volume of a data directory: the same name at every start, so that the data is found again. */
export function containerName(dataDir: string): string {
  return `hooktide-${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 12)}`
}

/**
 * Arguments of `docker run`. The image reads server settings from KAFKA_* variables and then ignores its own defaults,
 * so they must be complete. The port is the same inside and outside: a client is told the advertised one.
 */
export function dockerRunArgs(options: BrokerOptions, name: string, port: number): string[] {
  const settings: Record<string, string> = {
    ...singleNode,
    'controller.quorum.voters': '1@localhost:29093',
    listeners: `PLAINTEXT://0.0.0.0:${port},CONTROLLER://localhost:29093`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    'log.dirs': '/var/lib/kafka/data',
    ...options.properties,
  }
  const heapMb = options.heapMb ?? 512
  return [
    ...['run', '--detach', '--name', name, '--label', `dev.hooktide.data=${resolve(options.dataDir)}`],
    ...['--publish', `127.0.0.1:${port}:${port}`, '--volume', `${name}:/var/lib/kafka/data`],
    ...['--env', `KAFKA_HEAP_OPTS=-Xmx${heapMb}m -Xms${Math.min(heapMb, 256)}m`],
    ...Object.entries(settings).flatMap(([key, value]) => ['--env', `${variable(key)}=${value}`]),
    kafkaImage,
  ]
}

/** `KAFKA_` and the key in capitals: `.` becomes `_`, `_` becomes `__`, `-` becomes `___` (the image's rule). */
function variable(key: string): string {
  return `KAFKA_${key.replaceAll('_', '__').replaceAll('-', '___').replaceAll('.', '_').toUpperCase()}`
}

async function runDocker(
  deps: BrokerDeps,
  options: BrokerOptions,
  docker: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<void> {
  const result = await runCommand(deps.clock, docker, args, { env: options.env, timeoutMs })
  if (result.code === 0) return
  throw new HooktideError('broker.unavailable', `docker ${args[0]} failed`, {
    details: result.output.trim().split('\n').slice(-15),
    remedy: 'Try the command by hand, or force another way with HOOKTIDE_BROKER=local or KAFKA_BROKERS.',
  })
}

export async function pullImage(deps: BrokerDeps, options: BrokerOptions, docker: string): Promise<void> {
  const inspect = ['image', 'inspect', '--format', '{{.Id}}', kafkaImage]
  const here = await runCommand(deps.clock, docker, inspect, { env: options.env, timeoutMs: commandTimeoutMs })
  if (here.code === 0) return
  deps.progress(`Fetching ${kafkaImage} by Docker (once) …`)
  await runDocker(deps, options, docker, ['pull', '--quiet', kafkaImage], pullTimeoutMs)
}

export async function startDocker(deps: BrokerDeps, options: BrokerOptions, docker: string): Promise<OwnBroker> {
  if (options.security !== undefined) {
    throw new HooktideError('usage', 'a broker with TLS, SASL or ACLs can only be started locally', {
      remedy: 'Set HOOKTIDE_BROKER=local.',
    })
  }
  const name = containerName(options.dataDir)
  const run = (args: readonly string[]) => runDocker(deps, options, docker, args, commandTimeoutMs)
  const quietly = (args: readonly string[]) =>
    runCommand(deps.clock, docker, args, { env: options.env, timeoutMs: commandTimeoutMs })
  await pullImage(deps, options, docker)
  await mkdir(options.dataDir, { recursive: true })
  await takeOver(deps, options)
  const port = options.port ?? ((await freePorts(1))[0] as number)
  // A container of this name is a leftover of a crash. Its data is in the volume, which stays.
  await quietly(['rm', '--force', name])
  deps.progress('Starting Kafka in Docker …')
  const callOff = atOurEnd(options.env, '"$0" rm --force "$1"', [docker, name])
  const serves = () => answersKafka(deps.clock, '127.0.0.1', port, 2000)
  const untilServing = async () => {
    if (await waitUntil(deps.clock, serves, { timeoutMs: startTimeoutMs, everyMs: 250 })) return
    const { output } = await quietly(['logs', '--tail', '15', name])
    throw new HooktideError('broker.unavailable', `Kafka in container ${name} did not start`, {
      details: output.trim().split('\n'),
      remedy: `See docker logs ${name}. If its data is not needed: docker rm -f ${name} && docker volume rm ${name}`,
    })
  }
  const stop = async () => {
    await quietly(['stop', '--time', '10', name])
    await quietly(['rm', '--force', name])
    callOff()
    await removeRunFile(options.dataDir)
  }
  const signal = (word: string) => void quietly([word, name])
  try {
    await run(dockerRunArgs(options, name, port))
    await untilServing()
    await writeRunFile(deps, options.dataDir, { kind: 'docker', pid: 0, port, secure: {} })
  } catch (error) {
    await stop()
    throw error
  }
  return {
    brokers: `127.0.0.1:${port}`,
    kind: 'docker',
    owned: true,
    secure: {},
    stop,
    kill: () => run(['kill', name]),
    restart: async () => {
      await run(['restart', '--time', '10', name])
      await untilServing()
    },
    pause: () => signal('pause'),
    resume: () => signal('unpause'),
  }
}
