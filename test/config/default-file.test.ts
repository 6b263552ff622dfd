import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import type { Field } from '../../src/config/fields.ts'
import { eachField, envName } from '../../src/config/read.ts'
import { table } from '../../src/config/table.ts'
import { loadConfig } from '../../src/config.ts'

const path = new URL('../../config/hooktide.default.yaml', import.meta.url).pathname
const text = readFileSync(path, 'utf8')
const fields: [string, readonly string[], Field<unknown>][] = []
eachField(table, (keys, field) => fields.push([keys.join('.'), keys, field]))

test('the defaults file is the built-in defaults, and legal without a warning', () => {
  const loaded = loadConfig({ path })
  expect(loaded.config).toEqual(loadConfig().config)
  expect(loaded.warnings).toEqual([])
})

describe('the defaults file writes and explains every key there is', () => {
  const document = parseDocument(text)
  const lines = text.split('\n')

  test.each(fields)('%s', (_, keys, field) => {
    expect(document.hasIn(keys)).toBe(true)
    const written = document.getIn(keys, false) as { toJSON?: () => unknown } | unknown
    const value =
      typeof written === 'object' && written !== null && 'toJSON' in written
        ? (written as { toJSON(): unknown }).toJSON()
        : written
    expect(field.read(value)).toEqual(field.read(field.fallback))
    expect(lines[lineOf(lines, keys) - 1], 'the line above is a comment').toMatch(/^\s*# \S/)
  })
})

test('.env.example names only variables there are', () => {
  const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')
  const assigned = [...example.matchAll(/^#?(HOOKTIDE_[A-Z0-9_]+)=/gm)].map((match) => match[1])
  expect(assigned.length).toBeGreaterThan(5)
  const env = Object.fromEntries([...example.matchAll(/^#?([A-Z0-9_]+)=(.*)$/gm)].map((match) => [match[1], match[2]]))
  expect(() => loadConfig({ env: { ...env, HOOKTIDE_KAFKA_SASL_PASSWORD_REF: 'env:X' } })).not.toThrow()
  expect(loadConfig({ env }).warnings).toEqual([])
})

test('environment names are distinct', () => {
  expect(new Set(fields.map(([, keys]) => envName(keys))).size).toBe(fields.length)
  expect(envName(['kafka', 'sasl', 'passwordRef'])).toBe('HOOKTIDE_KAFKA_SASL_PASSWORD_REF')
})

/** The line a key stands in, found by indentation. */
function lineOf(lines: readonly string[], keys: readonly string[]): number {
  let at = -1
  for (const [depth, key] of keys.entries())
    at = lines.findIndex((line, i) => i > at && line.startsWith(`${'  '.repeat(depth)}${key}:`))
  return at
}
