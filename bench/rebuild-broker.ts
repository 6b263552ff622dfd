import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/app.ts'
import { decodeAttempt, decodeControl } from '../src/schema/decode.ts'
import { buildState } from '../src/state/rebuild.ts'
import { sourcesOf } from '../src/state/sources.ts'
import { SqliteHome } from '../src/state/sqlite-home.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { lanes, MadeLog } from './state-log.ts'
import { World } from './world.ts'

const quiet = { log: () => undefined, count: () => undefined, time: () => undefined }

/** As `hooktide state rebuild`: what is read is what a broker holds, and is decoded as it comes. */
export const rebuildBroker: Scenario = {
  name: 'rebuild-broker',
  about: 'a log of deliveries with an attempt each, written to a broker, folded into SQLite with its indexes',
  async run(stage, settings) {
    const rows = new Rows()
    const world = await World.open(stage, { name: 'rebuild', subscriptions: () => [] })
    const folder = mkdtempSync(join(stage.folder, 'rebuild-'))
    try {
      const log = new MadeLog(settings.deliveries ?? 120_000)
      await write(world, log)
      for (let round = 0; round < settings.rounds; round++)
        rows.add('rebuild', await rebuild(world, folder, log.records))
    } finally {
      rmSync(folder, { recursive: true, force: true })
      await world.close()
    }
    return { rows: rows.all(), targets: [{ row: 'rebuild', figure: 'records/s', atLeast: 50_000 }] }
  },
}

async function write(world: World, log: MadeLog): Promise<void> {
  const producer = world.kafka.producer()
  const end = (await log.ends('deliveries')).get(0) as number
  for (let from = 0; from < end; from += 300) {
    // A delivery and its attempt come close together, as they do in the log of a running Hooktide.
    for (const topic of ['deliveries', 'attempts']) {
      const batches = await Promise.all(
        Array.from({ length: lanes }, (_, partition) => log.fetch({ topic, partition, from })),
      )
      await producer.send(
        batches.flatMap(({ partition, records }) =>
          records.map(({ key, value, headers }) => ({
            topic: world.prefix + topic,
            partition,
            key: key?.toString() ?? null,
            value,
            headers,
          })),
        ),
      )
    }
  }
  await producer.close()
}

async function rebuild(world: World, folder: string, records: number): Promise<Figures> {
  const name = (topic: string) => world.prefix + topic
  const reader = world.kafka.reader()
  const build = await new SqliteHome(folder, systemClock).build()
  const cpuBefore = process.cpuUsage()
  const foldBefore = process.threadCpuUsage()
  const startMs = performance.now()
  await buildState(
    {
      reader,
      sources: sourcesOf({
        deliveries: name('deliveries'),
        tiers: [name('retry-10s')],
        parked: name('parked'),
        dead: name('dead'),
        attempts: name('attempts'),
        control: name('control'),
      }),
      clock: systemClock,
      observer: quiet,
      decoders: { attempt: decodeAttempt, control: decodeControl },
    },
    build,
    { signal: new AbortController().signal, progress: () => undefined },
  )
  const foldedMs = performance.now() - startMs
  const cpu = process.cpuUsage(cpuBefore)
  const fold = process.threadCpuUsage(foldBefore)
  await build.publish()
  const allMs = performance.now() - startMs
  await reader.close()
  return {
    'records/s': Math.round(records / (foldedMs / 1000)),
    'with indexes/s': Math.round(records / (allMs / 1000)),
    'CPU µs': (cpu.user + cpu.system) / records,
    'CPU µs reading': (fold.user + fold.system) / records,
    'RSS MB': process.memoryUsage.rss() / 1e6,
  }
}
