import { describe, expect, test } from 'vitest'
import { circles } from './circles.ts'
import { sources } from './files.ts'
import { type Import, inspect, source } from './source.ts'

/** Which part of `src` may import which (ARCHITECTURE.md, "Who may import whom"). Every part may import itself. */
const allowed: Readonly<Record<string, readonly string[] | 'all'>> = {
  core: [],
  ports: ['core'],
  config: ['core'],
  schema: ['core'],
  pipeline: ['core', 'ports'],
  kafka: ['core', 'ports'],
  http: ['core', 'ports'],
  observe: ['core', 'ports'],
  secrets: ['core', 'ports'],
  objects: ['core', 'ports'],
  state: ['core', 'ports'],
  broker: ['core', 'ports'],
  operations: ['core', 'ports', 'config', 'schema'],
  api: ['core', 'ports', 'config', 'schema', 'operations'],
  cli: ['core', 'ports', 'config', 'schema', 'operations'],
  app: 'all',
  // A program of its own, like app, made of the same parts.
  demo: 'all',
  main: ['app', 'cli', 'config', 'core', 'demo', 'observe'],
}

/** The only part that may import a package; what is not here is anybody's. */
const owners: Readonly<Record<string, string>> = {
  kafkajs: 'kafka',
  'lz4-napi': 'kafka',
  snappy: 'kafka',
  undici: 'http',
  pino: 'observe',
  'prom-client': 'observe',
  commander: 'cli',
  fastify: 'api',
  ajv: 'schema',
  kysely: 'state',
  pg: 'state',
  '@aws-sdk/client-s3': 'objects',
}

/** `src/config.ts` and `src/config/read.ts` are both of part `config`. */
function partOf(path: string): string {
  return (path.split('/')[1] as string).replace(/\.ts$/, '')
}

function packageOf(target: string): string {
  const parts = target.split('/')
  return parts.slice(0, target.startsWith('@') ? 2 : 1).join('/')
}

const isLocal = ({ target }: Import) => target.startsWith('src/')
const isData = ({ target }: Import) => target.endsWith('.json')
const isPackage = (found: Import) => !isLocal(found) && !isData(found) && !found.target.startsWith('node:')

test('every part of src has a line in the table', () => {
  expect(sources.length).toBeGreaterThan(100)
  expect([...new Set(sources.map(partOf))].filter((part) => !(part in allowed))).toEqual([])
})

describe('imports go only where the table says', () => {
  test.each(Object.entries(allowed))('%s', (part, targets) => {
    const wrong = sources
      .filter((path) => partOf(path) === part)
      .flatMap((path) =>
        source(path)
          .imports.filter(isLocal)
          .map(({ target }) => ({ path, target, to: partOf(target) })),
      )
      .filter(({ to }) => to !== part && targets !== 'all' && !targets.includes(to))
      .map(({ path, target }) => `${path} imports ${target}`)
    expect(wrong).toEqual([])
  })
})

test('a package is imported only by the part that owns it', () => {
  const wrong = sources.flatMap((path) =>
    source(path)
      .imports.filter(isPackage)
      .map(({ target }) => packageOf(target))
      .filter((name) => (owners[name] ?? partOf(path)) !== partOf(path))
      .map((name) => `${path} imports ${name}, which is ${owners[name]}'s`),
  )
  expect(wrong).toEqual([])
})

test('core imports nothing but itself, and hashes and address parsing of Node', () => {
  const wrong = sources
    .filter((path) => partOf(path) === 'core')
    .flatMap((path) =>
      source(path)
        .imports.filter((found) => !isLocal(found) && !pureOfNode(found))
        .map(({ target, names }) => `${path} imports ${names.join(', ')} from ${target}`),
    )
  expect(wrong).toEqual([])
})

/** `node:net` for `isIP`; of `node:crypto` nothing that is chance. */
function pureOfNode({ target, names }: Import): boolean {
  if (target === 'node:net') return names.every((name) => ['isIP', 'isIPv4', 'isIPv6'].includes(name))
  return target === 'node:crypto' && !names.some((name) => /^(random|generate|webcrypto)/i.test(name))
}

// Types count: two files that need each other's are read and changed as one, and a third place is theirs.
test('nothing imports itself in a circle, not even for a type', () => {
  const targets = (path: string) =>
    source(path)
      .imports.filter(isLocal)
      .map(({ target }) => target)
  const found = circles(sources, targets)
  expect(found.map((way) => `${way}: move what they share to a file of its own`)).toEqual([])
})

test.each([
  ["import { a } from './b.ts'"],
  ["import type { A } from './b.ts'"],
  ["import { type A } from './b.ts'"],
  ["import './b.ts'"],
  ["const b = await import('./b.ts')"],
  ["type A = import('./b.ts').A"],
  ["type B = typeof import('./b.ts')"],
  ["export type { A } from './b.ts'"],
  ["export * from './b.ts'"],
])('an import is seen: %s', (text) => {
  expect(inspect('src/a.ts', text).imports.map(({ target }) => target)).toEqual(['src/b.ts'])
})

test('no file only passes on what others export', () => {
  expect(sources.filter((path) => source(path).isBarrel)).toEqual([])
})

test.each([
  ['two files', { a: ['b'], b: ['c'], c: ['b'] }, ['b > c > b']],
  ['a file that imports itself', { a: ['b'], b: ['b'] }, ['b > b']],
  ['the shortest way of several', { a: ['b'], b: ['c'], c: ['d', 'a'], d: ['c'] }, ['c > d > c']],
  ['each knot', { a: ['b', 'c'], b: ['a'], c: ['d'], d: ['c'] }, ['c > d > c', 'a > b > a']],
  ['no circle where two ways lead to one file', { a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }, []],
] as [string, Record<string, string[]>, string[]][])('the search for circles finds %s', (_, graph, found) => {
  expect(circles(Object.keys(graph), (node) => graph[node] ?? [])).toEqual(found)
})
