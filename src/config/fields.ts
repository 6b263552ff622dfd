import type { Tier } from '../core/ladder.ts'
import { formatDuration, formatSize, parseDuration, parseSize } from './units.ts'

/** What is wrong with one value: sentence and remedy. */
export class Invalid {
  readonly message: string
  readonly remedy: string
  constructor(message: string, remedy: string) {
    this.message = message
    this.remedy = remedy
  }
}

/** One key of the configuration: reads a YAML value (environment variables come as text) and gives T or what is wrong. */
export interface Field<T> {
  readonly t: 'field'
  /** Duration keys get `Ms` at the end of their name in `Config`. */
  readonly duration: boolean
  /** The value may be a secret put in the wrong place: never print it. */
  readonly secret: boolean
  /** As a person would write it in the file. */
  readonly fallback: unknown
  /** Lists and records are written as YAML in an environment variable; lists of words also with commas. */
  readonly env: 'text' | 'words' | 'yaml'
  read(value: unknown): T | Invalid
}

interface DurationField extends Field<number> {
  readonly duration: true
}

export type Table = { readonly [key: string]: Table | Field<unknown> }

/** The type of the configuration a table describes. */
export type Values<T extends Table> = {
  readonly [K in keyof T as T[K] extends DurationField ? `${K & string}Ms` : K]: T[K] extends Field<infer V>
    ? V
    : T[K] extends Table
      ? Values<T[K]>
      : never
}

function field<T>(fallback: unknown, read: Field<T>['read'], extra: Partial<Field<T>> = {}): Field<T> {
  return { t: 'field', duration: false, secret: false, env: 'text', fallback, read, ...extra }
}

export function isField(entry: Table | Field<unknown>): entry is Field<unknown> {
  return (entry as { t?: unknown }).t === 'field'
}

export function duration(fallback: string, min: string, max: string): DurationField {
  const [low, high] = [parseDuration(min) as number, parseDuration(max) as number]
  const remedy = `write a number with its unit (250ms, 10s, 5m, 2h) from ${min} to ${max}`
  const read = (value: unknown): number | Invalid => {
    const ms = typeof value === 'string' || value === 0 ? parseDuration(String(value)) : null
    if (ms === null) return new Invalid(typeof value === 'number' ? 'has no unit' : 'is not a duration', remedy)
    if (ms < low || ms > high) return new Invalid(`is out of range (${formatDuration(ms)})`, remedy)
    return ms
  }
  return { ...field(fallback, read), duration: true }
}

export function size(fallback: string, min: string, max: string): Field<number> {
  const [low, high] = [parseSize(min) as number, parseSize(max) as number]
  const remedy = `write bytes or a size (256KiB, 64MiB) from ${min} to ${max}`
  return field(fallback, (value) => {
    const bytes = typeof value === 'string' || typeof value === 'number' ? parseSize(String(value)) : null
    if (bytes === null) return new Invalid('is not a size', remedy)
    if (bytes < low || bytes > high) return new Invalid(`is out of range (${formatSize(bytes)})`, remedy)
    return bytes
  })
}

function numeric(fallback: number, min: number, max: number, whole: boolean): Field<number> {
  const remedy = `write a ${whole ? 'whole ' : ''}number from ${min} to ${max}`
  return field(fallback, (value) => {
    const n = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof n !== 'number' || !Number.isFinite(n) || (whole && !Number.isInteger(n)))
      return new Invalid(`is not a ${whole ? 'whole ' : ''}number`, remedy)
    return n < min || n > max ? new Invalid('is out of range', remedy) : n
  })
}

export function integer(fallback: number, min: number, max: number): Field<number> {
  return numeric(fallback, min, max, true)
}

export function number(fallback: number, min: number, max: number): Field<number> {
  return numeric(fallback, min, max, false)
}

export function flag(fallback: boolean): Field<boolean> {
  return field(fallback, (value) => {
    if (typeof value === 'boolean') return value
    if (value === 'true' || value === 'false') return value === 'true'
    return new Invalid('is not true or false', 'write true or false')
  })
}

export function text(fallback: string, pattern: RegExp, remedy: string): Field<string> {
  return field(fallback, (value) => {
    if (typeof value !== 'string') return new Invalid('is not a text', remedy)
    return pattern.test(value) ? value : new Invalid('is malformed', remedy)
  })
}

export function oneOf<const T extends string>(fallback: T, choices: readonly T[]): Field<T> {
  return field(fallback, (value) =>
    choices.includes(value as T)
      ? (value as T)
      : new Invalid('is not one of the known values', `write one of ${choices.join(', ')}`),
  )
}

/** null (or an empty environment variable) says: not set. */
export function optional<T>(inner: Field<T>): Field<T | null> {
  return {
    ...inner,
    fallback: null,
    read: (value) => (value === null || value === '' ? null : inner.read(value)),
  }
}

/** A reference to a secret, never the secret: `env:NAME` or `file:PATH`. Its value is not printed, lest it is one. */
export function reference(): Field<string | null> {
  const remedy = 'write a reference, env:NAME or file:PATH, never the secret itself'
  const inner = text('', /^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$/, remedy)
  return { ...optional(inner), secret: true }
}

export function words(
  fallback: readonly string[],
  check: (word: string) => boolean,
  remedy: string,
  min = 1,
): Field<readonly string[]> {
  const read = (value: unknown): readonly string[] | Invalid => {
    const list = typeof value === 'string' ? value.split(',').map((word) => word.trim()) : value
    if (!Array.isArray(list)) return new Invalid('is not a list', remedy)
    const found = list.filter((word) => word !== '')
    const bad = found.find((word) => typeof word !== 'string' || !check(word))
    if (bad !== undefined) return new Invalid(`has a malformed item ${JSON.stringify(bad)}`, remedy)
    if (new Set(found).size < found.length) return new Invalid('holds the same item twice', 'remove one of them')
    return found.length < min ? new Invalid('is empty', remedy) : (found as string[])
  }
  return field(fallback, read, { env: 'words' })
}

export function tiers(fallback: readonly { name: string; delay: string }[]): Field<readonly Tier[]> {
  const remedy = 'write a list of {name, delay}, e.g. [{name: retry-10s, delay: 10s}], delays from 100ms to 7d'
  const read = (value: unknown): readonly Tier[] | Invalid => {
    if (!Array.isArray(value) || value.length === 0) return new Invalid('is not a list of tiers', remedy)
    const found: Tier[] = []
    for (const [i, item] of value.entries()) {
      const { name, delay, ...rest } = (typeof item === 'object' && item !== null ? item : {}) as Record<
        string,
        unknown
      >
      if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,60}$/.test(name))
        return new Invalid(`tier ${i + 1} has no usable name`, remedy)
      const delayMs = typeof delay === 'string' ? parseDuration(delay) : null
      if (delayMs === null || delayMs < 100 || delayMs > 604_800_000)
        return new Invalid(`tier ${name} has no usable delay`, remedy)
      const extra = Object.keys(rest)[0]
      if (extra !== undefined) return new Invalid(`tier ${name} has an unknown key ${extra}`, remedy)
      found.push({ name, delayMs })
    }
    return found
  }
  return field(fallback, read, { env: 'yaml' })
}
