import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { catalogue, exportedName } from '../../src/observe/catalogue.ts'

const root = join(import.meta.dirname, '..', '..')

interface Use {
  readonly where: string
  readonly kind: 'counter' | 'timer'
  /** null: not a literal. */
  readonly name: string | null
  readonly labels: readonly string[]
}

/** Calls of `observer.count` and `observer.time` in the source, with their literal names and the keys of literal labels. */
function usesIn(file: string): Use[] {
  const text = readFileSync(join(root, file), 'utf8')
  const uses: Use[] = []
  for (const found of text.matchAll(/observer\s*\??\.(count|time)\(/g)) {
    const args = argumentsAt(text, found.index + found[0].length)
    const name = /^'([^']+)'$/.exec(args[0] ?? '')?.[1] ?? null
    const literal = /^\{([\s\S]*)\}$/.exec(args[2] ?? '')?.[1]
    const labels = literal === undefined ? [] : split(literal).map((part) => part.split(':', 1)[0]?.trim() ?? '')
    const line = text.slice(0, found.index).split('\n').length
    uses.push({ where: `${file}:${line}`, kind: found[1] === 'count' ? 'counter' : 'timer', name, labels })
  }
  return uses
}

function argumentsAt(text: string, start: number): string[] {
  let depth = 1
  let end = start
  for (; depth > 0 && end < text.length; end++) {
    if ('([{'.includes(text[end] as string)) depth++
    else if (')]}'.includes(text[end] as string)) depth--
  }
  return split(text.slice(start, end - 1))
}

function split(text: string): string[] {
  const parts: string[] = ['']
  let depth = 0
  for (const c of text) {
    if ('([{'.includes(c)) depth++
    else if (')]}'.includes(c)) depth--
    if (c === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += c
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

const uses = globSync('src/**/*.ts', { cwd: root })
  .filter((file) => !file.startsWith(join('src', 'observe')))
  .flatMap(usesIn)

describe('metric catalogue', () => {
  it('holds every counter and timer of the code, with its labels', () => {
    expect(uses.length).toBeGreaterThan(10)
    const wrong = uses.flatMap(({ where, kind, name, labels }) => {
      if (name === null) return [`${where}: the name of a metric must be a literal`]
      const entry = catalogue[name]
      if (entry === undefined) return [`${where}: ${name} is not in the catalogue`]
      if (entry.kind !== kind) return [`${where}: ${name} is a ${entry.kind}`]
      return labels
        .filter((label) => !entry.labels?.includes(label))
        .map((label) => `${where}: ${name} has no label ${label}`)
    })
    expect(wrong).toEqual([])
  })

  it('has names, help and labels that Prometheus takes, and no two that become one', () => {
    const names = Object.entries(catalogue).map(([name, { kind }]) => exportedName(name, kind))
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^hooktide_[a-z0-9_]+_(total|seconds)$/)
    for (const { help, labels = [] } of Object.values(catalogue)) {
      expect(help.length).toBeGreaterThan(10)
      for (const label of labels) expect(label).toMatch(/^[a-z_]+$/)
    }
  })

  it('has no label whose values grow with the traffic', () => {
    const labels = Object.values(catalogue).flatMap(({ labels = [] }) => labels)
    for (const banned of ['subscription', 'tenant', 'url', 'event', 'delivery', 'key', 'id'])
      expect(labels).not.toContain(banned)
  })
})
