import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, open, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { HooktideError } from '../core/error.ts'
import { freePorts, isFree } from './free-ports.ts'
import { answersKafka } from './handshake.ts'
import { withLock } from './lock.ts'
import type { BrokerDeps, BrokerOptions, OwnBroker } from './options.ts'
import { atOurEnd } from './processes.ts'
import { type LocalLayout, propertiesText, serverProperties } from './properties.ts'
import { propertiesName, removeRunFile, takeOver, writeRunFile } from './run-file.ts'
import { ensureStorage, type JavaCall, logDirOf } from './storage.ts'
import { waitUntil } from './wait.ts'

const startTimeoutMs = 120_000
const stopGraceMs = 10_000
const logName = 'broker.log'

/** Starts Kafka in a Java process of ours and waits until it serves. `java` and the jars have been found before. */
export async function startLocal(
  deps: BrokerDeps,
  given: BrokerOptions,
  javaPath: string,
  jars: string,
): Promise<OwnBroker> {
  const options = { ...given, dataDir: resolve(given.dataDir) }
  await mkdir(options.dataDir, { recursive: true })
  const log = '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'
  const java: JavaCall = {
    path: javaPath,
    args: ['-cp', `${jars}/*`, log, '-Dorg.slf4j.simpleLogger.showDateTime=true'],
  }
  const waiting = 'Waiting for another process that starts a broker here …'
  return withLock(deps, join(options.dataDir, 'start.lock'), { timeoutMs: startTimeoutMs, waiting }, async () => {
    await takeOver(deps, options)
    const broker = new LocalBroker(deps, options, java)
    await broker.first(options.port ?? (await lastPort(options.dataDir)))
    return broker
  })
}

/** The plain port of the last run, so that a development broker keeps its address. */
async function lastPort(dataDir: string): Promise<number | null> {
  const text = await readFile(join(dataDir, propertiesName), 'utf8').catch(() => '')
  const match = /^listeners=PLAINTEXT:\/\/127\.0\.0\.1:(\d+)/m.exec(text)
  return match === null ? null : Number(match[1])
}

class LocalBroker implements OwnBroker {
  readonly kind = 'local'
  readonly owned = true
  readonly #deps: BrokerDeps
  readonly #options: BrokerOptions
  readonly #java: JavaCall
  #layout: LocalLayout | null = null
  #child: ChildProcess | null = null
  #callOff: (() => void) | null = null

  constructor(deps: BrokerDeps, options: BrokerOptions, java: JavaCall) {
    this.#deps = deps
    this.#options = options
    this.#java = java
  }

  get brokers(): string {
    return `127.0.0.1:${this.#layout?.plainPort ?? 0}`
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get secure(): Readonly<Record<string, string>> {
    const ports = Object.entries(this.#layout?.securePorts ?? {})
    return Object.fromEntries(ports.map(([name, port]) => [name, `127.0.0.1:${port}`]))
  }

  /** A free port can be gone when Kafka binds it: then once more with others. */
  async first(wishedPort: number | null): Promise<void> {
    this.#deps.progress('Starting Kafka …')
    for (let attempt = 1; ; attempt++) {
      await this.#lay(attempt === 1 || this.#options.port !== undefined ? wishedPort : null)
      await ensureStorage(this.#deps, this.#options, this.#java)
      const trouble = await this.#launch()
      if (trouble === null) return
      const taken = /BindException|Address already in use|Socket server failed to bind/.test(trouble)
      if (!taken || attempt === 3 || this.#options.port !== undefined) throw this.#failure(trouble)
    }
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async restart(): Promise<void> {
    await this.#end('SIGTERM')
    const trouble = await this.#launch()
    if (trouble !== null) throw this.#failure(trouble)
  }

  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM')
    await removeRunFile(this.#options.dataDir)
  }

  async #lay(wishedPort: number | null): Promise<void> {
    const { dataDir, security, properties } = this.#options
    const listeners = security?.listeners ?? []
    const [plain, controller, ...rest] = (await freePorts(2 + listeners.length)) as [number, number, ...number[]]
    const wished = wishedPort !== null && (await isFree(wishedPort))
    if (this.#options.port !== undefined && !wished) {
      throw new HooktideError('broker.unavailable', `port ${this.#options.port} on 127.0.0.1 is in use`, {
        remedy: 'Choose another port, or none: then a free one is taken.',
      })
    }
    const tls = security?.tls
    const tlsFiles = { ca: join(dataDir, 'ca.pem'), keystore: join(dataDir, 'broker.pem') }
    if (tls !== undefined) {
      await writeFile(tlsFiles.ca, tls.ca)
      await writeFile(tlsFiles.keystore, `${tls.key.trim()}\n${tls.certificate.trim()}\n`, { mode: 0o600 })
    }
    this.#layout = {
      logDir: logDirOf(dataDir),
      plainPort: wished ? (wishedPort as number) : plain,
      controllerPort: controller,
      securePorts: Object.fromEntries(listeners.map((listener, i) => [listener.name, rest[i] as number])),
      ...(tls === undefined ? {} : { tlsFiles }),
    }
    const text = propertiesText(serverProperties(this.#layout, security, properties))
    await writeFile(join(dataDir, propertiesName), text, { mode: 0o600 })
  }

  /** Null when it serves, else what its log says. */
  async #launch(): Promise<string | null> {
    const { dataDir, heapMb = 512, env } = this.#options
    const layout = this.#layout as LocalLayout
    const log = await open(join(dataDir, logName), 'w')
    // It lives for minutes, beside what it is to serve: compiling it to the last costs more than that ever gives back.
    const machine = [`-Xmx${heapMb}m`, `-Xms${Math.min(heapMb, 256)}m`, '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
    const args = [...machine, ...this.#java.args, 'kafka.Kafka', join(dataDir, propertiesName)]
    // Its own session: Ctrl-C is for us; we stop the broker when we have drained.
    const child = spawn(this.#java.path, args, {
      cwd: dataDir,
      detached: true,
      env: env as NodeJS.ProcessEnv,
      stdio: ['ignore', log.fd, log.fd],
    })
    await log.close()
    let ended = false
    const whenEnded = () => {
      ended = true
      if (this.#child !== child) return
      this.#callOff?.()
      this.#callOff = null
    }
    child.once('exit', whenEnded)
    child.once('error', whenEnded)
    this.#child = child
    if (child.pid === undefined) return `${this.#java.path} could not be started`
    this.#callOff = atOurEnd(env, killScript, [String(child.pid)])
    const secure = this.secure
    await writeRunFile(this.#deps, dataDir, { kind: 'local', pid: child.pid, port: layout.plainPort, secure })
    const serves = () => !ended && answersKafka(this.#deps.clock, '127.0.0.1', layout.plainPort, 2000)
    const options = { timeoutMs: startTimeoutMs, everyMs: 100, giveUp: () => ended }
    if ((await waitUntil(this.#deps.clock, serves, options)) && !ended) return null
    await this.#end('SIGKILL')
    return readFile(join(dataDir, logName), 'utf8')
  }

  async #end(name: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === null) return
    const gone = () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined
    if (!gone()) child.kill(name)
    const options = { timeoutMs: stopGraceMs, everyMs: 20 }
    if (!(await waitUntil(this.#deps.clock, gone, options))) {
      child.kill('SIGKILL')
      await waitUntil(this.#deps.clock, gone, options)
    }
    this.#callOff?.()
    this.#callOff = null
  }

  #failure(log: string): HooktideError {
    return new HooktideError('broker.unavailable', 'Kafka did not start', {
      details: log.trim().split('\n').filter(isTelling).slice(-12),
      remedy: `See ${join(this.#options.dataDir, logName)}. If its data is not needed, delete ${this.#options.dataDir}.`,
    })
  }
}

function isTelling(line: string): boolean {
  return !/^\s+at /.test(line)
}

/** TERM, and KILL for one that is stopped or hangs. */
const killScript =
  'kill -TERM "$0"; i=0; while [ $i -lt 50 ] && kill -0 "$0"; do sleep 0.1; i=$((i+1)); done; kill -KILL "$0"'
