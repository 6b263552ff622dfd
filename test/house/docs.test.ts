import { expect, test } from 'vitest'
import { eachField } from '../../src/config/read.ts'
import { table } from '../../src/config/table.ts'
import { catalogue, exportedName } from '../../src/observe/catalogue.ts'
import { paths, read } from './files.ts'

const pages = paths.filter((path) => path.endsWith('.md'))

test('docs/operations.md explains every metric, and no other', () => {
  const counted = Object.entries(catalogue).map(([name, { kind }]) => exportedName(name, kind))
  const vitals = read('src/observe/vital-gauges.ts')
  const gauges = [...vitals.matchAll(/gauge\(\s*'(\w+)'/g)].map((match) => `hooktide_${match[1]}`)
  const counters = [...vitals.matchAll(/name: '(hooktide_\w+)'/g)].map((match) => match[1] as string)
  expect(gauges.length).toBeGreaterThan(8)
  const rows = read('docs/operations.md').match(/^\| `hooktide_.*$/gm) ?? []
  const told = rows.flatMap((row) => (row.split('|')[1] as string).match(/hooktide_\w+/g) ?? [])
  expect([...told].sort()).toEqual([...counted, ...gauges, ...counters].sort())
})

test('docs/events.md names every reason for which an event is rejected', () => {
  const union = /type EventProblem =([\s\S]*?)\n\n/.exec(read('src/core/event.ts'))?.[1] ?? ''
  const codes = [...union.matchAll(/'([\w-]+)'/g)].map((match) => match[1] as string)
  expect(codes.length).toBeGreaterThan(10)
  const rows =
    read('docs/events.md')
      .split('## Limits')[1]
      ?.match(/^\| `.*$/gm) ?? []
  const told = rows.flatMap((row) =>
    [...(row.split('|')[1] as string).matchAll(/`([\w-]+)`/g)].map((match) => match[1]),
  )
  expect([...told].sort()).toEqual([...codes, 'undecodable'].sort())
})

test('configuration keys named in pages exist', () => {
  const keys = new Set<string>()
  eachField(table, (path) => {
    for (let n = 1; n <= path.length; n++) keys.add(path.slice(0, n).join('.'))
  })
  const groups = Object.keys(table).join('|')
  const wrong = pages.flatMap((page) =>
    [...read(page).matchAll(new RegExp(`\`((?:${groups})\\.[a-zA-Z.]+)\``, 'g'))]
      .map((match) => match[1] as string)
      .filter((name) => !keys.has(name) && !/\.(ts|json|md)$/.test(name))
      .map((name) => `${page}: ${name}`),
  )
  expect(wrong).toEqual([])
})

test('npm scripts named in pages exist', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/npm run ([\w:-]+)/g)].map((match) => match[1] as string),
  )
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !(name in scripts))).toEqual([])
})

test('event names of the log that pages tell people to look for are written somewhere', () => {
  const sources = paths
    .filter((path) => path.startsWith('src/'))
    .map(read)
    .join('\n')
  const prefixes = 'lane|router|consumer|batch|secret|subscription|service|delivery|parked|line'
  const named = [...read('docs/operations.md').matchAll(new RegExp(`\`((?:${prefixes})\\.[a-z_]+)\``, 'g'))].map(
    (match) => match[1] as string,
  )
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !sources.includes(`'${name}'`))).toEqual([])
})
