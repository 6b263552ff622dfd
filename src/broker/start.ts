import { HooktideError } from '../core/error.ts'
import { findTool } from './command.ts'
import { findDocker, kafkaImage, pullImage, startDocker } from './docker.ts'
import { ensureJars, hasJars, jarFolder } from './jars.ts'
import { type Finding, findJava, leastJava } from './java.ts'
import { startLocal } from './local.ts'
import type { BrokerDeps, BrokerKind, BrokerOptions, OwnBroker, RunningBroker } from './options.ts'
import { findRunning } from './run-file.ts'

/**
 * A broker for development, tests and the demo: KAFKA_BROKERS if set; else the one that another process runs on this
 * data directory; else one of our own, by Docker if its daemon answers, else by Java. HOOKTIDE_BROKER=url|docker|local
 * forces one way. Rejects `broker.unavailable` with what was found of each way.
 */
export async function startBroker(options: BrokerOptions, deps: BrokerDeps): Promise<RunningBroker> {
  const forced = forcedKind(options)
  const url = urlOf(options)
  if (forced === 'url' || forced === null) {
    if (url !== null) return { brokers: url, kind: 'url', owned: false, secure: {}, stop: async () => undefined }
  }
  if (forced !== 'url') {
    const running = await findRunning(deps, options)
    if (running !== null && (forced === null || forced === running.kind)) return running
  }
  return startOwnBroker(options, deps)
}

/** Like `startBroker`, but always one of our own, whose faults can be scripted. */
export async function startOwnBroker(options: BrokerOptions, deps: BrokerDeps): Promise<OwnBroker> {
  const forced = forcedKind(options)
  const reasons = new Map<BrokerKind, string>()
  if (urlOf(options) === null) reasons.set('url', 'not set')
  // Docker can have no secure listeners; then only Java will do.
  const wantDocker = forced === 'docker' || (forced === null && options.security === undefined)
  if (wantDocker) {
    const docker = await findDocker(deps, options)
    if (docker.ok) return startDocker(deps, options, docker.value)
    reasons.set('docker', docker.reason)
  }
  if (forced === null || forced === 'local') {
    const java = await findLocal(deps, options)
    if (java.ok) return startLocal(deps, options, java.value, await ensureJars(deps, options))
    reasons.set('local', java.reason)
  }
  throw noBroker(forced, reasons)
}

/** Fetches what a start will need (once, minutes) and starts nothing. Without a way to a broker it does nothing. */
export async function prepareBroker(options: BrokerOptions, deps: BrokerDeps): Promise<void> {
  const forced = forcedKind(options)
  if (forced === 'url' || (forced === null && urlOf(options) !== null)) return
  if (forced !== 'local') {
    const docker = await findDocker(deps, options)
    if (docker.ok) return pullImage(deps, options, docker.value)
    if (forced === 'docker') return
  }
  if ((await findLocal(deps, options)).ok) await ensureJars(deps, options)
}

/** Java, and Maven unless Kafka's jars are here already. */
export async function findLocal(deps: BrokerDeps, options: BrokerOptions): Promise<Finding<string>> {
  const java = await findJava(deps.clock, options.env)
  const mvn = (await hasJars(await jarFolder(options))) || (await findTool(options.env, 'mvn')) !== null
  if (java.ok && mvn) return java
  const missing = [...(java.ok ? [] : [java.reason]), ...(mvn ? [] : ['no mvn on PATH'])]
  return { ok: false, reason: missing.join('; ') }
}

function urlOf(options: BrokerOptions): string | null {
  const text = (options.env.KAFKA_BROKERS ?? '').trim()
  return text === '' ? null : text
}

function forcedKind(options: BrokerOptions): BrokerKind | null {
  const value = options.env.HOOKTIDE_BROKER ?? ''
  if (value === '') return null
  if (value === 'url' || value === 'docker' || value === 'local') return value
  throw new HooktideError('config.invalid', `HOOKTIDE_BROKER is "${value}"`, {
    remedy: 'Set it to url, docker or local, or leave it empty.',
  })
}

function noBroker(forced: BrokerKind | null, reasons: ReadonlyMap<BrokerKind, string>): HooktideError {
  const found = (kind: BrokerKind) => reasons.get(kind) ?? `not tried, HOOKTIDE_BROKER=${forced ?? 'local'}`
  return new HooktideError('broker.unavailable', 'no Kafka broker, and no way to start one', {
    details: [
      `1. KAFKA_BROKERS=host:port of a broker you run: ${found('url')}`,
      `2. Docker (runs ${kafkaImage}): ${found('docker')}`,
      `3. Java ${leastJava} or newer and Maven (runs Kafka as a process): ${found('local')}`,
    ],
    remedy:
      forced === null
        ? 'Provide one of the three; on Debian and Ubuntu: apt install openjdk-17-jre-headless maven.'
        : `Provide what HOOKTIDE_BROKER=${forced} needs, or unset it to let Hooktide choose.`,
  })
}
