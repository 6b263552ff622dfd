import type { Output } from '../cli/deps.ts'
import { ago, clip, table } from '../cli/text.ts'
import type { TierVitals } from '../core/vitals.ts'
import type { Clock } from '../ports.ts'
import type { Standing } from './attempts-tail.ts'

export interface Progress {
  readonly produced: number
  readonly events: number
  readonly inFlight: number
  readonly subscriptions: readonly { readonly id: string; readonly expected: number; readonly standing: Standing }[]
  readonly tiers: readonly TierVitals[]
}

/** How the run goes, on stderr: redrawn in place on a terminal, else a line every 2 s. */
export class Display {
  readonly #out: Output
  readonly #clock: Clock
  readonly #startMs: number
  #lastMs = Number.NEGATIVE_INFINITY
  #drawnLines = 0

  constructor(out: Output, clock: Clock) {
    this.#out = out
    this.#clock = clock
    this.#startMs = clock.mono()
  }

  show(progress: Progress): void {
    const nowMs = this.#clock.mono()
    if (nowMs - this.#lastMs < (this.#out.isTTY ? 200 : 2000)) return
    this.#lastMs = nowMs
    const elapsed = ago(nowMs - this.#startMs)
    if (!this.#out.isTTY) {
      this.#out.write(`${progressLine(progress, elapsed, this.#clock.now())}\n`)
      return
    }
    const lines = progressLines(progress, elapsed, this.#clock.now())
    const up = this.#drawnLines === 0 ? '' : `\u001b[${this.#drawnLines}A`
    // A terminal that does not know its size says 0.
    const width = (this.#out.columns || 100) - 1
    this.#out.write(`${up}${lines.map((line) => `\u001b[K${clip(line, width)}\n`).join('')}\u001b[J`)
    this.#drawnLines = lines.length
  }

  /** Takes a redrawn display away. */
  end(): void {
    if (this.#drawnLines > 0) this.#out.write(`\u001b[${this.#drawnLines}A\u001b[J`)
    this.#drawnLines = 0
  }
}

export function progressLine(progress: Progress, elapsed: string, nowMs: number): string {
  const { produced, events, inFlight, subscriptions, tiers } = progress
  const sum = (of: (s: Standing) => number) => subscriptions.reduce((n, { standing }) => n + of(standing), 0)
  const waiting = tiers.filter(({ held }) => held > 0).map((tier) => tierText(tier, nowMs))
  const parts = [
    `${produced} of ${events} events`,
    `${sum(({ settled }) => settled)} deliveries settled (${sum(({ dead }) => dead)} dead)`,
    `${inFlight} in flight`,
    ...(waiting.length === 0 ? [] : [`waiting: ${waiting.join(', ')}`]),
  ]
  return `${elapsed.padStart(4)}  ${parts.join(', ')}`
}

export function progressLines(progress: Progress, elapsed: string, nowMs: number): string[] {
  const { produced, events, inFlight, subscriptions, tiers } = progress
  const columns = [
    { title: 'SUBSCRIPTION' },
    { title: 'SETTLED', right: true },
    { title: 'OF', right: true },
    { title: 'DEAD', right: true },
    { title: 'ATTEMPTS', right: true },
    { title: '' },
  ]
  const rows = subscriptions.map(({ id, expected, standing: { settled, dead, attempts } }) => {
    return [id, String(settled), String(expected), String(dead), String(attempts), bar(settled, expected)]
  })
  return [
    `${elapsed}  ${produced} of ${events} events produced, ${inFlight} in flight`,
    ...table(columns, rows).split('\n'),
    ...tiers.map((tier) => `waiting: ${tierText(tier, nowMs)}`),
  ]
}

function tierText({ tier, held, lowestDueMs }: TierVitals, nowMs: number): string {
  const next = lowestDueMs === null ? '' : ` (next in ${ago(Math.max(0, lowestDueMs - nowMs))})`
  return `${held} in ${tier}${next}`
}

function bar(done: number, of: number): string {
  const width = 24
  const full = of === 0 ? 0 : Math.min(width, Math.round((done / of) * width))
  return '█'.repeat(full) + '░'.repeat(width - full)
}
