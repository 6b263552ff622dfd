import { parse } from 'yaml'
import { messageOf } from '../core/error.ts'
import type { Problem } from '../core/result.ts'
import { suggest } from '../core/suggest.ts'
import { type Field, Invalid, isField, type Table } from './fields.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** One place values come from, nearest to the person last: file, environment, overrides. */
export interface Layer {
  /** Where, for messages: `hooktide.yaml`, `environment`. */
  readonly label: string
  readonly tree: unknown
}

/** `kafka.sasl.passwordRef` → `HOOKTIDE_KAFKA_SASL_PASSWORD_REF`. */
export function envName(keys: readonly string[]): string {
  return `HOOKTIDE_${keys.map((key) => key.replaceAll(/([A-Z])/g, '_$1').toUpperCase()).join('_')}`
}

export function eachField(
  table: Table,
  visit: (keys: readonly string[], field: Field<unknown>) => void,
  keys: readonly string[] = [],
): void {
  for (const [key, entry] of Object.entries(table)) {
    if (isField(entry)) visit([...keys, key], entry)
    else eachField(entry, visit, [...keys, key])
  }
}

/** The tree of a YAML text; an empty one is an empty tree. */
export function yamlTree(text: string, label: string, problems: Problem[]): unknown {
  try {
    return parse(text, { prettyErrors: true, maxAliasCount: 20 }) ?? {}
  } catch (error) {
    const message = messageOf(error).split('\n')[0] as string
    problems.push({ field: label, value: '', message: `is not YAML: ${message}`, remedy: 'correct the line named' })
    return {}
  }
}

/** The tree the environment spells, with its own names for the messages; names nobody knows become warnings. */
export function envTree(table: Table, env: Env, problems: Problem[], warnings: string[]): Record<string, unknown> {
  const tree: Record<string, unknown> = {}
  const known = new Set<string>(otherNames)
  eachField(table, (keys, field) => {
    const name = envName(keys)
    known.add(name)
    const alias = name === 'HOOKTIDE_KAFKA_BROKERS' ? env.KAFKA_BROKERS || undefined : undefined
    const text = env[name] ?? alias
    if (text === undefined) return
    put(tree, keys, field.env === 'yaml' ? yamlTree(text, name, problems) : text)
  })
  for (const name of Object.keys(env)) {
    if (!name.startsWith('HOOKTIDE_') || known.has(name) || isReferenced(name, env)) continue
    const meant = suggest(name, known)
    // Not an error: Kubernetes sets HOOKTIDE_PORT and the like for a service called hooktide.
    warnings.push(
      `${name} in the environment names no configuration key${meant === null ? '' : `; did you mean ${meant}?`}`,
    )
  }
  return tree
}

/** Read elsewhere: by the process edge and the broker launcher. */
const otherNames = ['HOOKTIDE_CONFIG', 'HOOKTIDE_BROKER', 'HOOKTIDE_URL', 'HOOKTIDE_TOKEN']

/** Some reference in the environment or a conventional name for a secret. */
function isReferenced(name: string, env: Env): boolean {
  return name.startsWith('HOOKTIDE_SECRET_') || Object.values(env).some((value) => value === `env:${name}`)
}

/** All values of the table, the last layer that has one winning, else the default; problems are added to the list. */
export function readTable(table: Table, layers: readonly Layer[], problems: Problem[]): Record<string, unknown> {
  for (const layer of layers) unknownKeys(table, layer.tree, layer.label, [], problems)
  const config: Record<string, unknown> = {}
  eachField(table, (keys, field) => {
    const layer = layers.findLast((candidate) => at(candidate.tree, keys) !== undefined)
    const written = layer === undefined ? field.fallback : at(layer.tree, keys)
    const value = field.read(written)
    if (value instanceof Invalid) {
      problems.push({
        field: layer?.label === 'environment' ? envName(keys) : keys.join('.'),
        value: printable(written, field.secret),
        message: value.message,
        remedy: value.remedy,
      })
      return
    }
    const last = keys.at(-1) as string
    put(config, [...keys.slice(0, -1), field.duration ? `${last}Ms` : last], value)
  })
  return config
}

function unknownKeys(table: Table, tree: unknown, label: string, keys: readonly string[], problems: Problem[]): void {
  const field = keys.join('.') || label
  if (tree === null || tree === undefined) return
  if (typeof tree !== 'object' || Array.isArray(tree)) {
    const remedy = `write keys below it: ${Object.keys(table).join(', ')}`
    problems.push({ field, value: printable(tree, false), message: 'is not a group of keys', remedy })
    return
  }
  for (const [key, value] of Object.entries(tree)) {
    const entry = Object.hasOwn(table, key) ? table[key] : undefined
    if (entry !== undefined) {
      if (!isField(entry)) unknownKeys(entry, value, label, [...keys, key], problems)
      continue
    }
    const meant = suggest(key.replace(/(Ms|Seconds)$/, ''), Object.keys(table))
    const remedy = meant === null ? `known here: ${Object.keys(table).join(', ')}` : `did you mean ${meant}?`
    problems.push({ field: [...keys, key].join('.'), value: '', message: 'is not a known key', remedy })
  }
}

function at(tree: unknown, keys: readonly string[]): unknown {
  let value = tree
  for (const key of keys) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

function put(tree: Record<string, unknown>, keys: readonly string[], value: unknown): void {
  let group = tree
  for (const key of keys.slice(0, -1)) {
    group[key] ??= {}
    group = group[key] as Record<string, unknown>
  }
  group[keys.at(-1) as string] = value
}

function printable(value: unknown, secret: boolean): string {
  if (secret) return '***'
  const text = JSON.stringify(value) ?? ''
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}
