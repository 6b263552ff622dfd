import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/app.ts'
import type { Observer } from '../../src/ports.ts'
import { decodeAttempt, decodeControl } from '../../src/schema/decode.ts'
import type { StateHome } from '../../src/state/home.ts'
import { Projector, type ProjectorOptions } from '../../src/state/projector.ts'
import { buildState, type FoldWorld } from '../../src/state/rebuild.ts'
import { sourcesOf } from '../../src/state/sources.ts'
import { SqliteHome } from '../../src/state/sqlite-home.ts'
import { type Comparison, compareStates, type Difference } from '../../src/state/verify.ts'
import { type MemoryLog, topics } from './histories.ts'

export const quiet: Observer = { log: () => undefined, count: () => undefined, time: () => undefined }

export function worldOf(log: MemoryLog): FoldWorld {
  return {
    reader: log,
    sources: sourcesOf(topics),
    clock: systemClock,
    observer: quiet,
    decoders: { attempt: decodeAttempt, control: decodeControl },
  }
}

export function sqliteHome(): SqliteHome {
  const folder = mkdtempSync(join(tmpdir(), 'hooktide-state-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return new SqliteHome(folder, systemClock)
}

export function projectorOf(log: MemoryLog, home: StateHome, options: Partial<ProjectorOptions> = {}): Projector {
  const projector = new Projector({
    ...worldOf(log),
    home,
    attemptsTopic: topics.attempts,
    pollMs: 5,
    batchRecords: 10,
    ...options,
  })
  onTestFinished(() => projector.stop())
  return projector
}

/** Runs a projector until everything that the log holds now is in the state. */
export async function project(log: MemoryLog, home: StateHome, options: Partial<ProjectorOptions> = {}): Promise<void> {
  const projector = projectorOf(log, home, options)
  projector.start()
  await caughtUp(projector)
  await projector.stop()
}

export async function caughtUp(projector: Projector): Promise<void> {
  await until(
    () => projector.vitals.state === 'waiting' && projector.vitals.lag === 0,
    () => JSON.stringify(projector.vitals),
  )
}

export async function until(condition: () => boolean | Promise<boolean>, what: () => string): Promise<void> {
  const deadlineMs = systemClock.mono() + 15_000
  while (!(await condition())) {
    if (systemClock.mono() > deadlineMs) throw new Error(`it did not come: ${what()}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Rebuilds beside the live state and compares. */
export async function verify(
  log: MemoryLog,
  home: StateHome,
  shortened = false,
): Promise<Comparison & { readonly found: readonly Difference[] }> {
  const live = await home.snapshot()
  const build = await home.build(true)
  const { signal } = new AbortController()
  const found: Difference[] = []
  try {
    await buildState(worldOf(log), build, { signal, progress: () => undefined })
    const report = (difference: Difference) => void found.push(difference)
    return {
      ...(await compareStates(live.db, await build.built(), { shortened, signal, report, progress: () => undefined })),
      found,
    }
  } finally {
    await build.discard()
    await live.close()
  }
}
