import { MessageChannel } from 'node:worker_threads'
import type { Clock } from '../ports.ts'

/** Unlike a bare `clock.after` this keeps the process alive: a start-up step is worth waiting for. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const hold = new MessageChannel()
    hold.port1.on('message', () => undefined)
    clock.after(ms, () => {
      hold.port1.close()
      resolve()
    })
  })
}

/** Asks until the answer is true; false when the time is up or `giveUp` says so. */
export async function waitUntil(
  clock: Clock,
  ask: () => boolean | Promise<boolean>,
  options: { readonly timeoutMs: number; readonly everyMs: number; readonly giveUp?: () => boolean },
): Promise<boolean> {
  const start = clock.mono()
  for (;;) {
    if (await ask()) return true
    if (options.giveUp?.() === true || clock.mono() - start >= options.timeoutMs) return false
    await sleep(clock, options.everyMs)
  }
}
