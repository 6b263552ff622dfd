import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Figures } from './result.ts'
import type { Stage } from './world.ts'

const program = join(import.meta.dirname, 'plain-consumer.java')

/**
 * What Kafka's own Java consumer takes to read `count` records of a topic and do nothing with them: more than that nobody
 * who reads from this broker on this machine can have. Null: no Java compiler, or the broker is not the one from Maven.
 */
export async function plainConsumer(stage: Stage, topic: string, count: number): Promise<Figures | null> {
  const folder = jars()
  if (folder === null) return null
  const args = ['-Xmx256m', '-cp', join(folder, '*'), program, stage.broker.brokers, topic, String(count)]
  const found = await promisify(execFile)('java', args, { timeout: 90_000 }).catch(() => null)
  const line = found?.stdout.split('\n').find((text) => text.startsWith('{'))
  if (line === undefined) return null
  const { steadyPerSecond, cpuSeconds, records } = JSON.parse(line) as Record<string, number>
  return { steady: steadyPerSecond as number, 'CPU s/1000': ((cpuSeconds as number) * 1000) / (records as number) }
}

/** Where the local broker's own are; none: it has not been made ready by Maven here. */
function jars(): string | null {
  const cache = join(import.meta.dirname, '..', '.hooktide', 'cache')
  if (!existsSync(cache)) return null
  const folder = readdirSync(cache).find((name) => name.startsWith('kafka-'))
  return folder === undefined ? null : join(cache, folder)
}
