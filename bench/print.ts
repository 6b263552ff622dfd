import type { Machine } from './machine.ts'
import type { Row, ScenarioResult, Target } from './result.ts'
import { spread } from './stats.ts'

/** Markdown, so that it reads on a terminal and can stand in docs/performance.md as it is. */
export function scenarioText(result: ScenarioResult): string {
  const load = result.load.map((value) => value.toFixed(1)).join(' → ')
  return [
    `### ${result.scenario}`,
    '',
    `${result.about}. ${Math.round(result.seconds)} s, load ${load}.`,
    '',
    ...table(result.rows),
    '',
    ...result.targets.map((target) => verdict(target, result.rows)),
  ].join('\n')
}

export function machineText(machine: Machine, broker: string): string {
  const { cpu, cores, memoryGb, system, node } = machine
  return `${cores} × ${cpu}, ${memoryGb} GB, ${system}, Node ${node}, Kafka: ${broker}`
}

/** One line per figure, one column per row: figures are many, rows few. */
function table(rows: readonly Row[]): string[] {
  const names = [...new Set(rows.flatMap(({ rounds }) => rounds.flatMap((figures) => Object.keys(figures))))]
  const cells = [
    ['', ...rows.map(({ name }) => name)],
    ...names.map((name) => [name, ...rows.map((row) => cell(row, name))]),
  ]
  const widths = cells[0]?.map((_, i) => Math.max(3, ...cells.map((line) => (line[i] as string).length))) ?? []
  const line = (texts: readonly string[]) =>
    `| ${texts.map((text, i) => text.padEnd(widths[i] as number)).join(' | ')} |`
  const [head, ...body] = cells
  return [line(head as string[]), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)]
}

function cell(row: Row, name: string): string {
  const values = row.rounds.map((figures) => figures[name])
  if (values.every((value) => value === undefined)) return ''
  const seen = values.filter((value) => typeof value === 'number')
  if (seen.length === 0) return 'unknown'
  const { median, min, max } = spread(seen)
  return seen.length === 1 ? short(median) : `${short(median)} (${short(min)}–${short(max)})`
}

function verdict(target: Target, rows: readonly Row[]): string {
  const values = rows
    .filter(({ name }) => name === target.row)
    .flatMap(({ rounds }) => rounds.map((figures) => figures[target.figure]))
    .filter((value) => typeof value === 'number')
  const { median } = spread(values)
  const ok = median >= (target.atLeast ?? -Infinity) && median <= (target.atMost ?? Infinity)
  const wanted = target.atLeast === undefined ? `at most ${target.atMost}` : `at least ${target.atLeast}`
  return `${ok ? 'reached' : 'NOT reached'}: ${target.row}: ${target.figure} ${short(median)}, wanted ${wanted}`
}

function short(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (Math.abs(value) >= 100) return String(Math.round(value))
  if (Number.isInteger(value)) return String(value)
  return value.toFixed(Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3)
}
