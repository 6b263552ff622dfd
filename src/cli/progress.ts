import type { Progress } from '../operations/progress.ts'
import type { Clock } from '../ports.ts'
import type { Output } from './deps.ts'

/** On stderr: rewritten in place on a terminal, else one line every 5 s. */
export function createProgress(stderr: Output, clock: Clock): Progress {
  const everyMs = stderr.isTTY ? 100 : 5000
  // Nothing at once: work that is over quickly needs no display.
  let lastMs = clock.mono() + (stderr.isTTY ? 400 : 0)
  let shown = false
  return {
    update(text) {
      const nowMs = clock.mono()
      if (nowMs - lastMs < everyMs) return
      lastMs = nowMs
      if (stderr.isTTY) stderr.write(`\r\u001b[K${text.slice(0, stderr.columns - 1)}`)
      else stderr.write(`${text}\n`)
      shown = true
    },
    end() {
      if (shown && stderr.isTTY) stderr.write('\r\u001b[K')
      shown = false
    },
  }
}
