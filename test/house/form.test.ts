import { expect, test } from 'vitest'
import { paths, read, sources } from './files.ts'

const mostLines = 300

/** Files that are longer all the same, and how long they may be: hardly longer than they are, and one day not at all. */
const longer: Readonly<Record<string, { readonly lines: number; readonly why: string }>> = {}

function linesOf(path: string): number {
  return read(path).split('\n').length - 1
}

test(`no file of src is longer than ${mostLines} lines`, () => {
  const wrong = sources
    .map((path) => ({ path, lines: linesOf(path), most: longer[path]?.lines ?? mostLines }))
    .filter(({ lines, most }) => lines > most)
    .map(({ path, lines, most }) => `${path} has ${lines} lines, at most ${most}`)
  expect(wrong).toEqual([])
})

test('who may be longer still has to be', () => {
  for (const path of Object.keys(longer)) expect(linesOf(path), path).toBeGreaterThan(mostLines)
})

/** Names that tools and people look for in this form. */
const customary = new Set([
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'LICENSE',
  'Dockerfile',
])

test('files are named in kebab-case', () => {
  const wrong = paths.filter((path) => {
    if (customary.has(path)) return false
    return !path.split('/').every((part) => /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/.test(part))
  })
  expect(wrong).toEqual([])
})

test('no file knows the machine it was written on', () => {
  const places = /(?<![\w./-])\/(?:work|home|root|Users)\/[\w.-]+/
  const wrong = paths
    .filter((path) => !path.startsWith('test/cases/') && path !== 'test/house/form.test.ts')
    .flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, i) => (places.test(line) ? [`${path}:${i + 1}: ${line.trim().slice(0, 120)}`] : [])),
    )
  expect(wrong).toEqual([])
})

test('nothing is fetched from a registry that only one network has', () => {
  expect(read('package-lock.json')).not.toContain('"resolved": "http')
  expect(
    paths.filter((path) => path.endsWith('.npmrc')).flatMap((path) => read(path).match(/registry\s*=.*/g) ?? []),
  ).toEqual([])
  expect(read('broker/pom.xml')).not.toMatch(/<(repository|mirror|pluginRepository)>/)
})
