import { join } from 'node:path'
import { systemClock } from '../src/app.ts'
import type { BrokerDeps } from '../src/broker/options.ts'
import { startBroker } from '../src/broker/start.ts'

/** `npm run kafka [port]`: a broker for trying things by hand, in the foreground until Ctrl-C; its data stays. */
const root = join(import.meta.dirname, '..')
const folder = join(root, '.hooktide')
const deps: BrokerDeps = {
  clock: systemClock,
  progress: (line) => process.stderr.write(`${line}\n`),
  system: { pid: process.pid, kill: (pid, signal) => void process.kill(pid, signal) },
}
const options = {
  dataDir: join(folder, 'kafka'),
  cacheDir: join(folder, 'cache'),
  pomFile: join(root, 'broker', 'pom.xml'),
  env: { ...process.env, KAFKA_BROKERS: '' },
  port: Number(process.argv[2] ?? 9092),
}

try {
  const broker = await startBroker(options, deps)
  process.stdout.write(`Kafka listens on ${broker.brokers}. Ctrl-C stops it; its data stays in .hooktide/kafka.\n`)
  const alive = setInterval(() => undefined, 60_000)
  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve(name))
  })
  process.stderr.write(`${signal}: stopping Kafka\n`)
  clearInterval(alive)
  await broker.stop()
  process.exit(0)
} catch (error) {
  const { message, details = [], remedy } = error as Error & { details?: readonly string[]; remedy?: string }
  process.stderr.write(`${[`error: ${message}`, ...details, ...(remedy === undefined ? [] : [remedy])].join('\n')}\n`)
  process.exit(1)
}
