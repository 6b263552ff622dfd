import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/app.ts'
import { decodeAttempt, decodeControl } from '../src/schema/decode.ts'
import { QueryStore } from '../src/state/query-store.ts'
import { buildState } from '../src/state/rebuild.ts'
import { sourcesOf } from '../src/state/sources.ts'
import { SqliteHome } from '../src/state/sqlite-home.ts'
import { MadeLog } from './state-log.ts'

const topics = {
  deliveries: 'deliveries',
  tiers: ['retry-10s'],
  parked: 'parked',
  dead: 'dead',
  attempts: 'attempts',
  control: 'control',
}
const quiet = { log: () => undefined, count: () => undefined, time: () => undefined }

/**
 * `npm run bench -- rebuild [DELIVERIES]`: folds a made log into SQLite; records a second, CPU, memory along the way.
 * `npm run bench -- search [DELIVERIES]`: the same, then questions to it. Needs no broker. Returns whether the targets hold.
 */
export async function benchState(what: 'rebuild' | 'search', deliveries: number, print: (line: string) => void) {
  const folder = mkdtempSync(join(tmpdir(), 'hooktide-bench-state-'))
  const home = new SqliteHome(folder, systemClock)
  try {
    const log = new MadeLog(deliveries)
    const rebuilt = await rebuild(log, home, print)
    if (what === 'rebuild') return rebuilt
    return await search(log, home, deliveries, print)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function rebuild(log: MadeLog, home: SqliteHome, print: (line: string) => void): Promise<boolean> {
  const build = await home.build()
  const world = {
    reader: log,
    sources: sourcesOf(topics),
    clock: systemClock,
    observer: quiet,
    decoders: { attempt: decodeAttempt, control: decodeControl },
  }
  const rss: number[] = []
  let nextAt = log.records / 10
  const cpuBefore = process.cpuUsage()
  const foldBefore = process.threadCpuUsage()
  const startMs = performance.now()
  await buildState(world, build, {
    signal: new AbortController().signal,
    progress({ records }) {
      if (records < nextAt) return
      nextAt += log.records / 10
      rss.push(process.memoryUsage.rss() / 1e6)
    },
  })
  const foldedMs = performance.now() - startMs
  const cpu = process.cpuUsage(cpuBefore)
  const fold = process.threadCpuUsage(foldBefore)
  await build.publish()
  const allMs = performance.now() - startMs
  const perRecord = ({ user, system }: NodeJS.CpuUsage) => (user + system) / log.records
  const perSecond = log.records / (foldedMs / 1000)
  print(
    `folded        ${Math.round(perSecond)} records/s by the clock (target 50,000); ${log.records} records, the ${(log.spentMs / 1000).toFixed(1)} s of making them included`,
  )
  print(
    `CPU           ${perRecord(cpu).toFixed(1)} µs per record, ${perRecord(fold).toFixed(1)} of them in the thread that reads and folds`,
  )
  print(
    `indexes       ${((allMs - foldedMs) / 1000).toFixed(1)} s, then live; ${Math.round(log.records / (allMs / 1000))} records/s with them`,
  )
  print(`memory (RSS)  ${rss.map((mb) => Math.round(mb)).join(' ')} MB after each tenth`)
  return perSecond >= 50_000
}

async function search(log: MadeLog, home: SqliteHome, deliveries: number, print: (line: string) => void) {
  const store = new QueryStore(home, systemClock)
  const page = { limit: 50, cursor: null }
  const questions: readonly (readonly [string, (n: number) => Promise<unknown>])[] = [
    ['by event id', (n) => store.deliveries({ eventId: log.eventId(n) }, page)],
    [
      'by event id, of a tenant',
      (n) => store.deliveries({ eventId: log.eventId(n), tenant: `tenant-${n % 12}` }, page),
    ],
    ['by subscription, newest', (n) => store.deliveries({ subscriptionId: `sub-${n % 500}` }, page)],
    ['of a tenant by type', (n) => store.deliveries({ tenant: `tenant-${n % 12}`, type: 'order.paid' }, page)],
    ['dead of a subscription', (n) => store.deliveries({ subscriptionId: `sub-${n % 500}`, status: 'dead' }, page)],
    ['health of a subscription', (n) => store.subscriptionHealth(`sub-${n % 500}`)],
    ['counts', () => store.counts({})],
  ]
  let good = true
  for (const [name, ask] of questions) {
    const times: number[] = []
    const cpu: number[] = []
    for (let i = 0; i < 2_000; i++) {
      const n = Math.floor(systemClock.random() * deliveries)
      const before = process.cpuUsage()
      const startMs = performance.now()
      await ask(n)
      times.push(performance.now() - startMs)
      const { user, system } = process.cpuUsage(before)
      cpu.push((user + system) / 1000)
    }
    const p99 = (all: number[]) => all.sort((a, b) => a - b)[Math.floor(all.length * 0.99)] as number
    const cpuP99 = p99(cpu)
    const wallP99 = p99(times)
    const p50 = times[times.length / 2] as number
    // On a machine that does other things too, the clock also measures those.
    print(
      `${name.padEnd(26)} p50 ${p50.toFixed(2)} ms  p99 ${wallP99.toFixed(2)} ms  p99 of CPU ${cpuP99.toFixed(2)} ms`,
    )
    if (name === 'by event id') good = wallP99 < 20
  }
  await store.close()
  return good
}
