import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ScenarioResult } from './result.ts'
import { type Spread, spread } from './stats.ts'

const file = join(import.meta.dirname, 'baseline.json')
/** Ratios within one run: what they are does not depend on how fast the machine is, only a little on how busy. */
const gated = ['ratio', 'ratio by CPU']
/** What a ratio may fall by besides what its rounds spread. */
const allowance = 0.1

type Baseline = Record<string, Spread>

/** Keeps the ratios of this run as what later ones are held to. */
export function saveGate(results: readonly ScenarioResult[]): string {
  const text = JSON.stringify(ratios(results), null, 2)
  writeFileSync(file, `${text}\n`)
  return `bench/baseline.json: ${Object.keys(ratios(results)).length} ratios`
}

/** A line for each ratio, and whether all hold. */
export function checkGate(results: readonly ScenarioResult[]): { ok: boolean; lines: string[] } {
  const baseline: Baseline = JSON.parse(readFileSync(file, 'utf8'))
  const now = ratios(results)
  let ok = true
  const lines = Object.entries(baseline).flatMap(([name, was]) => {
    const is = now[name]
    if (is === undefined) return []
    const least = (was.median - (was.max - was.min) / 2) * (1 - allowance)
    const holds = is.median >= least
    ok &&= holds
    return [
      `${holds ? 'holds' : 'FELL'}: ${name} ${is.median.toFixed(3)}, was ${was.median.toFixed(3)}, at least ${least.toFixed(3)}`,
    ]
  })
  if (lines.length === 0) return { ok: false, lines: ['nothing of this run stands in bench/baseline.json'] }
  return { ok, lines }
}

function ratios(results: readonly ScenarioResult[]): Baseline {
  const found: Baseline = {}
  for (const { scenario, rows } of results) {
    for (const { name, rounds } of rows) {
      for (const figure of gated) {
        const values = rounds.map((figures) => figures[figure]).filter((value) => typeof value === 'number')
        if (values.length > 0) found[`${scenario}: ${name}: ${figure}`] = spread(values)
      }
    }
  }
  return found
}
