import { expect, test } from 'vitest'
import { sources } from './files.ts'
import { inspect, source } from './source.ts'

/** Why a file may use what the rest is given as a port. */
const exceptions: Readonly<Record<string, { readonly names: readonly string[]; readonly why: string }>> = {
  'src/app.ts': {
    names: ['Date.now', 'setTimeout', 'Math.random', 'performance'],
    why: 'makes the only real clock',
  },
  'src/main.ts': {
    names: ['process', 'setInterval'],
    why: 'is the edge of the process; its interval keeps the process alive, as timers of the clock never do',
  },
}

/** Modules that hold the same under another name. */
const modules = ['node:process', 'node:timers', 'node:timers/promises', 'node:perf_hooks', 'node:console']

test('time, chance, the process and the console come from the caller', () => {
  const wrong = sources.flatMap((path) => {
    const { ambient, imports } = source(path)
    const may = exceptions[path]?.names ?? []
    const targets = imports.map(({ target }) => target)
    return [
      ...[...ambient].filter((name) => !may.includes(name)),
      ...targets.filter((name) => modules.includes(name)),
    ].map((name) => `${path}: ${name}`)
  })
  expect(wrong).toEqual([])
})

test('every exception is still needed', () => {
  for (const [path, { names }] of Object.entries(exceptions)) {
    expect([...source(path).ambient].sort(), path).toEqual([...names].sort())
  }
})

test('core waits for nothing: it has no promises', () => {
  const core = sources.filter((path) => path.startsWith('src/core/'))
  expect(core.length).toBeGreaterThan(30)
  expect(core.filter((path) => source(path).isAsync)).toEqual([])
})

test.each([
  ['const at = Date.now()', 'Date.now'],
  ['const at = new Date()', 'new Date()'],
  ['const env = process.env', 'process'],
  ['const later = globalThis.setTimeout', 'globalThis'],
  ['setTimeout(() => {}, 1)', 'setTimeout'],
  ['const chance = { of: Math.random() }', 'Math.random'],
  ['const signal = AbortSignal.timeout(1)', 'AbortSignal.timeout'],
])('the check sees %s', (text, name) => {
  expect([...inspect('src/x/y.ts', text).ambient]).toEqual([name])
})

test.each([
  'const day = new Date(nowMs)',
  'const kind = system.process',
  'const edge = { process: 1 }',
  "const text = 'Date.now()' // Date.now()",
])('the check leaves alone %s', (text) => {
  expect([...inspect('src/x/y.ts', text).ambient]).toEqual([])
})
