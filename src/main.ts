import { join } from 'node:path'
import { createCallApi } from './app/call-api.ts'
import { createEndpointTools } from './app/endpoint-tools.ts'
import { fetchText } from './app/fetch-text.ts'
import { openObjects } from './app/object-store.ts'
import { processOutput } from './app/process-output.ts'
import { createSecretTools } from './app/secret-tools.ts'
import { createStateTools } from './app/state-tools.ts'
import { startWorker, workerPlace } from './app/worker-process.ts'
import { Workers } from './app/workers.ts'
import { connect, rehearse, runDemo, startService, systemClock } from './app.ts'
import type { CliDeps, ServiceOptions } from './cli/deps.ts'
import { runCli } from './cli/run.ts'
import { workerShare } from './config/share.ts'
import type { LoadedConfig } from './config.ts'
import { messageOf } from './core/error.ts'
import { LineBuffer } from './observe/line-buffer.ts'
import { createObserver } from './observe/observer.ts'

/** The process edge: arguments, environment, signals, exit code. The only file that knows `process`. */
const clock = systemClock
const ending = new AbortController()
/** What a second signal does; by default the process just ends. */
let escalate = (signal: string): void => {
  process.stderr.write(`${signal} again: ending at once\n`)
  process.exit(130)
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (ending.signal.aborted) escalate(signal)
    else ending.abort(signal)
  })
}
// A bug that got past every handler: say so and end, the lanes' successors repeat what was open.
process.on('uncaughtException', (error) => fatal('uncaught exception', error))
process.on('unhandledRejection', (error) => fatal('unhandled rejection', error))

/** Log lines that are still on their way. */
let lastWords = (): void => undefined
process.on('exit', () => lastWords())

function fatal(what: string, error: unknown): never {
  process.stderr.write(`${JSON.stringify({ level: 'fatal', event: 'process.fatal', what, error: messageOf(error) })}\n`)
  if (error instanceof Error && error.stack !== undefined) process.stderr.write(`${error.stack}\n`)
  process.exit(70)
}

/** Command output goes to stdout, so what clients have to say goes to stderr, and only if it matters. */
function commandObserver() {
  return createObserver({ clock, stream: process.stderr, level: 'error', processMetrics: false })
}

async function runService({ loaded, roles, workers }: ServiceOptions): Promise<void> {
  const place = workerPlace(process.env)
  if (place === null && workers > 1) return await runWorkers(loaded, workers)
  const { warnings } = loaded
  const config = place === null ? loaded.config : workerShare(loaded.config, place)
  // Once per machine, and that is the first of its workers.
  const first = place === null || place.index === 0
  const lines = new LineBuffer(process.stdout, clock)
  lastWords = () => lines.flush()
  const base = place === null ? {} : { worker: place.index }
  const observer = createObserver({ clock, stream: lines, level: config.observe.level, base })
  if (first) for (const warning of warnings) observer.log('warn', 'config.warning', { warning })
  let failed: Error | null = null
  const service = await startService({
    config,
    roles: { router: roles.includes('router'), deliverer: roles.includes('deliverer') },
    projector: first && roles.includes('projector'),
    api: first && roles.includes('api'),
    env: process.env,
    clock,
    observer,
    onFatal(error) {
      observer.log('error', 'service.fatal', { error: error.message })
      failed ??= error
      ending.abort('fatal')
    },
  })
  escalate = (signal) => {
    observer.log('warn', 'service.aborting', {
      signal,
      what: 'open POSTs are cut off; their deliveries are made again',
    })
    service.abort(`${signal} again`)
    escalate = () => process.exit(130)
  }
  await new Promise<void>((resolve) => {
    if (ending.signal.aborted) resolve()
    else ending.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  observer.log('info', 'service.stopping', { why: String(ending.signal.reason) })
  await service.stop()
  observer.log('info', 'service.stopped')
  observer.close()
  lines.flush()
  if (failed !== null) throw failed
}

/** Several processes like this one; see `Workers`. */
async function runWorkers({ config }: LoadedConfig, count: number): Promise<void> {
  const observer = createObserver({ clock, stream: process.stdout, level: config.observe.level })
  const command = {
    file: process.execPath,
    args: [...process.execArgv, ...process.argv.slice(1)],
    env: process.env,
    output: (lines: Buffer) => void process.stdout.write(lines),
  }
  const workers = new Workers({ count, clock, observer, start: (index) => startWorker(command, { index, count }) })
  escalate = () => workers.abort()
  if (ending.signal.aborted) workers.stop()
  else ending.signal.addEventListener('abort', () => workers.stop(), { once: true })
  process.exitCode = await workers.run()
  observer.close()
}

/** A worker is told by its parent, and ends with it. */
if (workerPlace(process.env) !== null) {
  let aborted = false
  process.on('message', (word) => {
    if (!ending.signal.aborted) ending.abort('asked by the parent process')
    if (word !== 'abort' || aborted) return
    aborted = true
    escalate('abort')
  })
  process.on('disconnect', () => ending.signal.aborted || ending.abort('the parent process is gone'))
}

const root = join(import.meta.dirname, '..')
const deps: CliDeps = {
  env: process.env,
  stdin: process.stdin,
  stdout: processOutput(process.stdout),
  stderr: processOutput(process.stderr),
  clock,
  signal: ending.signal,
  runtime: { node: process.versions.node, platform: `${process.platform} ${process.arch}` },
  connect: (config) => connect(config, process.env, { clock, observer: commandObserver() }),
  secrets: createSecretTools(process.env, clock),
  state: (config) => createStateTools(config, process.env, { clock, observer: commandObserver() }),
  endpoints: createEndpointTools(process.env, clock),
  objects: (config) => openObjects(config, process.env, clock),
  fetchText: (url, timeoutMs) => fetchText(clock, url, timeoutMs),
  callApi: createCallApi(clock),
  startService: runService,
  runDemo: (options) =>
    runDemo(options, {
      clock,
      env: process.env,
      root,
      stdout: processOutput(process.stdout),
      stderr: processOutput(process.stderr),
      signal: ending.signal,
      system: { pid: process.pid, kill: (pid, signal) => void process.kill(pid, signal) },
    }),
  rehearse: (options) => {
    const [observer, stderr] = [commandObserver(), processOutput(process.stderr)]
    return rehearse(options, { clock, env: process.env, observer, stderr, signal: ending.signal })
  },
  setExitCode(code) {
    process.exitCode = code
  },
}

// Timers of ours never hold the process: this does. Without it a command that waits for nothing but a retry (no broker is
// up) would end there, in silence and with exit code 0.
setInterval(() => undefined, 60_000)
await runCli(process.argv.slice(2), deps)
// Connections that are still closing must not keep a finished command waiting; output has been handed over.
process.exit(process.exitCode ?? 0)
