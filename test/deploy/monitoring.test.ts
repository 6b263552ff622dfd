import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { catalogue } from '../../src/observe/catalogue.ts'
import { createObserver } from '../../src/observe/observer.ts'
import { paths, read, root } from '../house/files.ts'
import { FakeClock } from '../sim/fake-clock.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook: string }
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

const rules = (parse(read('deploy/prometheus/alerts.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
)
const { panels } = JSON.parse(read('deploy/grafana/hooktide.json')) as { panels: readonly Panel[] }
const kubernetes = paths
  .filter((path) => path.startsWith('deploy/kubernetes/') && path.endsWith('.yaml'))
  .map((path) => ({ where: path, expr: [...read(path).matchAll(/^\s*query: (.+)$/gm)].map((m) => m[1]).join('\n') }))
  .filter(({ expr }) => expr !== '')
const expressions = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: title, expr }))),
  ...kubernetes,
]

/** Names as Prometheus sees them, and all labels any of them has. */
async function exported(): Promise<{ names: Set<string>; labels: Set<string> }> {
  const clock = new FakeClock({ startMs: 0 })
  const observer = createObserver({ clock, stream: { write: () => {} } })
  const names = new Set<string>()
  for (const [, name, type] of (await observer.metrics()).body.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    if (type === 'histogram') for (const end of ['bucket', 'sum', 'count']) names.add(`${name}_${end}`)
    else names.add(name as string)
  }
  observer.close()
  const gauges = [...read('src/observe/vital-gauges.ts').matchAll(/\[((?:'\w+'(?:, )?)+)\]/g)]
  const labels = gauges.flatMap((match) => [...(match[1] as string).matchAll(/\w+/g)].map(String))
  return { names, labels: new Set([...labels, ...Object.values(catalogue).flatMap((entry) => entry.labels ?? [])]) }
}

test('every metric and label that alerts, dashboard and scaler ask for is there', async () => {
  const { names, labels } = await exported()
  expect(names.size).toBeGreaterThan(60)
  expect(expressions.length).toBeGreaterThan(60)
  const known = new Set([...labels, 'instance', 'le'])
  const wrong = expressions.flatMap(({ where, expr }) => {
    const used = [...expr.matchAll(/\b(?:hooktide|process|nodejs)_\w+/g)].map(String)
    const selected = [...expr.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map((m) => m[1] as string)
    const grouped = [...expr.matchAll(/\b(?:by|on|ignoring|without) \(([^)]*)\)/g)].flatMap((m) =>
      (m[1] as string).split(',').flatMap((label) => label.trim() || []),
    )
    return [
      ...used.filter((name) => !names.has(name)).map((name) => `${where}: no metric ${name}`),
      ...[...selected, ...grouped].filter((name) => !known.has(name)).map((name) => `${where}: no label ${name}`),
    ]
  })
  expect(wrong).toEqual([])
})

test('every gauge of the vital signs is in an alert or on the dashboard, but for those that only detail another', () => {
  const shown = expressions.map(({ expr }) => expr).join('\n')
  const vital = [...read('src/observe/vital-gauges.ts').matchAll(/gauge\(\s*'(\w+)'/g)].map((m) => `hooktide_${m[1]}`)
  const notShown = new Set([
    'hooktide_ready_depth',
    'hooktide_in_flight_bytes',
    'hooktide_tier_held',
    'hooktide_job_parts',
  ])
  expect(vital.filter((name) => !shown.includes(name) && !notShown.has(name))).toEqual([])
})

const promtool = spawnSync('promtool', ['--version']).error === undefined

describe('alerts', () => {
  test('each says what it is about, what to do, and where more is written', () => {
    const runbook = read('docs/operations.md')
    for (const { alert, labels, annotations } of rules) {
      expect(alert).toMatch(/^Hooktide[A-Z]\w+$/)
      expect(['page', 'ticket'], alert).toContain(labels.severity)
      expect(annotations.summary.length, alert).toBeLessThan(100)
      expect(annotations.description.length, alert).toBeGreaterThan(80)
      expect(annotations.runbook).toBe(`docs/operations.md#${alert.toLowerCase()}`)
      expect(runbook, alert).toMatch(new RegExp(`^### ${alert}$`, 'm'))
    }
    const told = [...runbook.matchAll(/^### (Hooktide\w+)$/gm)].map((match) => match[1])
    expect([...told].sort()).toEqual(rules.map(({ alert }) => alert).sort())
  })

  test('each is shown to fire, and to be quiet where all is well', () => {
    interface Case {
      readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[]
    }
    const { tests } = parse(read('deploy/prometheus/alerts.test.yaml')) as { tests: Case[] }
    const asked = tests.flatMap(({ alert_rule_test }) => alert_rule_test)
    const names = (fires: boolean) =>
      [...new Set(asked.filter((one) => one.exp_alerts.length > 0 === fires).map((one) => one.alertname))].sort()
    expect(names(true)).toEqual(rules.map(({ alert }) => alert).sort())
    expect(names(false)).toEqual(rules.map(({ alert }) => alert).sort())
  })

  if (!promtool) console.warn('skipped: promtool is not installed (Debian: apt-get install prometheus)')
  test.skipIf(!promtool)('promtool takes the rules, and their unit tests pass', () => {
    const run = (...args: string[]) =>
      execFileSync('promtool', args, { cwd: root, encoding: 'utf8', timeout: 60_000, stdio: 'pipe' })
    expect(run('check', 'rules', 'deploy/prometheus/alerts.yaml')).toContain(`${rules.length} rules found`)
    expect(run('test', 'rules', 'deploy/prometheus/alerts.test.yaml')).toContain('SUCCESS')
  })
})

describe('dashboard', () => {
  test('begins with the vital signs; panels have their own id and place and ask for something', () => {
    expect(panels[0]).toMatchObject({ type: 'row', title: 'Vital signs' })
    expect(panels[1]?.title).toBe('Oldest ready')
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = new Map<string, string>()
    for (const { title, type, gridPos, targets = [] } of panels) {
      if (type !== 'row') expect(targets.length, title).toBeGreaterThan(0)
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(cells.get(`${x},${y}`), title).toBeUndefined()
          cells.set(`${x},${y}`, title)
        }
      }
    }
  })

  if (!promtool) console.warn('skipped: the expressions of the dashboard are not parsed without promtool')
  test.skipIf(!promtool)('every expression of it is one that Prometheus can parse', () => {
    const rulesOf = panels
      .flatMap(({ targets = [] }) => targets)
      .map(({ expr }, i) => ({ record: `panel:${i}`, expr: expr.replaceAll('$__rate_interval', '1m') }))
    const folder = mkdtempSync(join(tmpdir(), 'hooktide-dashboard-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'rules.yaml')
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: rulesOf }] }))
    const { stdout, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8', timeout: 60_000 })
    expect(`${stdout}${stderr}`).toContain(`${rulesOf.length} rules found`)
  })
})
