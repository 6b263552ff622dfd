import { systemClock } from '../src/app.ts'
import { monoMs } from './mono.ts'

export const clock = systemClock

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Asks every 20 ms until `test` holds; rejects after `ms` with what was waited for. */
export async function until(what: string, ms: number, test: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = monoMs() + ms
  while (!(await test())) {
    if (monoMs() > endMs) throw new Error(`${what}: not within ${Math.round(ms / 1000)} s`)
    await sleep(20)
  }
}

/** The promise's value, or a rejection with what was waited for after `ms`. */
export async function within<T>(what: string, ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${Math.round(ms / 1000)} s`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
