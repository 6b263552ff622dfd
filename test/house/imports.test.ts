import { describe, expect, test } from 'vitest'
import { sources } from './files.ts'
import { type Import, source } from './source.ts'

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

test('nothing imports itself in a circle', () => {
  const edges = (path: string) => source(path).imports.filter((found) => isLocal(found) && found.isValue)
  expect(circles(sources, (path) => edges(path).map(({ target }) => target))).toEqual([])
})

test('no file only passes on what others export', () => {
  expect(sources.filter((path) => source(path).isBarrel)).toEqual([])
})

/** Strongly connected files (Tarjan, 1972) of more than one. */
function circles(nodes: readonly string[], next: (node: string) => readonly string[]): string[][] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.get(node) as number)
    stack.push(node)
    for (const target of next(node)) {
      if (!index.has(target)) visit(target)
      if (stack.includes(target)) low.set(node, Math.min(low.get(node) as number, low.get(target) as number))
    }
    if (low.get(node) !== index.get(node)) return
    const group = stack.splice(stack.indexOf(node))
    if (group.length > 1) found.push(group.sort())
  }
  for (const node of nodes) if (!index.has(node)) visit(node)
  return found
}

test('the search for circles finds one', () => {
  const graph: Record<string, string[]> = { a: ['b'], b: ['c'], c: ['b'], d: ['d'] }
  expect(circles(Object.keys(graph), (node) => graph[node] ?? [])).toEqual([['b', 'c']])
})
