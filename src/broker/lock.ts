import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { HooktideError } from '../core/error.ts'
import type { BrokerDeps } from './options.ts'
import { isAlive, startMark } from './processes.ts'
import { sleep } from './wait.ts'

/**
 * Runs `work` while no other process on this machine does under the same path. A lock whose holder is gone is taken
 * over; by a rename, which only one of several takers can win.
 */
export async function withLock<T>(
  deps: BrokerDeps,
  path: string,
  options: { readonly timeoutMs: number; readonly waiting: string },
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(dirname(path), { recursive: true })
  const mine = JSON.stringify({ pid: deps.system.pid, started: await startMark(deps.system.pid) })
  const start = deps.clock.mono()
  let told = false
  while (!(await take(deps, path, mine))) {
    if (deps.clock.mono() - start > options.timeoutMs) {
      throw new HooktideError('broker.timeout', `another process has held ${path} for ${options.timeoutMs / 1000} s`, {
        remedy: 'End that process, or delete the file if there is none.',
      })
    }
    if (!told) deps.progress(options.waiting)
    told = true
    await sleep(deps.clock, 100)
  }
  try {
    return await work()
  } finally {
    await rm(path, { force: true })
  }
}

async function take(deps: BrokerDeps, path: string, mine: string): Promise<boolean> {
  // A link appears with its content or not at all: nobody can see a lock without its holder.
  const draft = `${path}.draft-${deps.system.pid}`
  await writeFile(draft, mine)
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  const seen = await readFile(path, 'utf8').catch(() => null)
  if (seen === null || seen === mine || (await holderLives(deps, seen))) return false
  const grave = `${path}.stale-${deps.system.pid}`
  try {
    await rename(path, grave)
  } catch {
    return false
  }
  // Between reading and renaming somebody else may have taken over and locked anew: give theirs back.
  if ((await readFile(grave, 'utf8')) !== seen) await rename(grave, path)
  else await rm(grave, { force: true })
  return take(deps, path, mine)
}

async function holderLives(deps: BrokerDeps, text: string): Promise<boolean> {
  try {
    const holder = JSON.parse(text) as { pid: number; started: string | null }
    if (!isAlive(deps, holder.pid)) return false
    return holder.started === null || holder.started === (await startMark(holder.pid))
  } catch {
    // Not written by us.
    return false
  }
}
