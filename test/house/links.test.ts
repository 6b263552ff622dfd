import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { paths, read } from './files.ts'

const pages = paths.filter((path) => path.endsWith('.md'))
const known = new Set(paths.flatMap((path) => ancestors(path)))

function ancestors(path: string): string[] {
  const parent = posix.dirname(path)
  return parent === '.' ? [path] : [path, ...ancestors(parent)]
}

/** What stands in code is no link. */
function prose(path: string): string {
  return read(path)
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, '`code`')
}

function linksOf(path: string): string[] {
  return [...prose(path).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] as string)
}

/** As GitHub makes them from headings. */
function anchorsOf(path: string): Set<string> {
  const headings = read(path)
    .replace(/^```[\s\S]*?^```/gm, '')
    .match(/^#{1,6} .*$/gm)
  return new Set(
    (headings ?? []).map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replace(/\s/g, '-'),
    ),
  )
}

describe('links between pages lead somewhere', () => {
  test.each(pages)('%s', (path) => {
    const wrong = linksOf(path)
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => {
        const [file = '', anchor] = link.split('#')
        const target = file === '' ? path : posix.normalize(posix.join(posix.dirname(path), file)).replace(/\/$/, '')
        if (!known.has(target)) return true
        return anchor !== undefined && !anchorsOf(target).has(anchor)
      })
    expect(wrong).toEqual([])
  })
})

/** What a page calls a file of ours, in backticks, exists: `src/…/x.ts`, `docs/x.md`. */
describe('files named in pages exist', () => {
  test.each(pages.filter((path) => path !== 'CHANGELOG.md'))('%s', (path) => {
    const named = [
      ...read(path).matchAll(/`((?:src|test|docs|config|topics|schemas|bench|bin|broker)\/[\w./-]*\w\/?)`/g),
    ]
    const wrong = named.map((match) => (match[1] as string).replace(/\/$/, '')).filter((file) => !known.has(file))
    expect(wrong).toEqual([])
  })
})

test('there are pages to check', () => {
  expect(pages.length).toBeGreaterThan(10)
})
