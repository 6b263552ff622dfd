import type { ErrorObject } from 'ajv'
import { loggableUrl } from '../core/attempt.ts'
import type { Problem } from '../core/result.ts'

/** Ajv's errors as sentences for people: every one names the field, the value (never a secret) and the remedy. */
export function explain(errors: readonly ErrorObject[] | null | undefined, data: unknown): Problem[] {
  const problems: Problem[] = []
  for (const error of errors ?? []) {
    // `if` and `propertyNames` only repeat what their inner errors say.
    if (error.keyword === 'if' || (error.keyword === 'pattern' && error.propertyName !== undefined)) continue
    const keys = error.instancePath.split('/').slice(1).map(unescapePointer)
    if (error.keyword === 'required') keys.push(String(error.params.missingProperty))
    if (error.keyword === 'discriminator') keys.push(String(error.params.tag))
    const { message, remedy } = sentence(error, keys)
    problems.push({ field: fieldName(keys), value: printable(valueAt(data, keys), keys), message, remedy })
  }
  return problems
}

function sentence(error: ErrorObject, keys: readonly string[]): { message: string; remedy: string } {
  const p = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'required':
      return { message: 'is missing', remedy: 'add it' }
    case 'type':
      return { message: 'has the wrong type', remedy: `must be ${[p.type].flat().join(' or ')}` }
    case 'const':
      return { message: 'has the wrong value', remedy: `must be ${JSON.stringify(p.allowedValue)}` }
    case 'enum':
      return { message: 'is not one of the known values', remedy: `use ${list(p.allowedValues as unknown[])}` }
    case 'discriminator':
      return { message: 'is not a known kind of record', remedy: 'write it with this or a newer version of Hooktide' }
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
      return { message: 'is out of range', remedy: `must be ${p.comparison} ${p.limit}` }
    case 'minProperties':
      return { message: 'is empty', remedy: 'give one' }
    case 'minLength':
    case 'minItems':
      return p.limit === 1
        ? { message: 'is empty', remedy: 'give at least one' }
        : { message: 'is too short', remedy: `give at least ${p.limit}` }
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
      return { message: 'is too long', remedy: `at most ${p.limit}` }
    case 'uniqueItems':
      return { message: 'holds the same value twice', remedy: `remove item ${p.i}` }
    case 'propertyNames':
      return { message: `has a malformed name ${JSON.stringify(p.propertyName)}`, remedy: patternRemedy(['name']) }
    case 'pattern':
      return { message: 'is malformed', remedy: patternRemedy(keys) }
    default:
      return { message: error.message ?? 'is invalid', remedy: '' }
  }
}

function patternRemedy(keys: readonly string[]): string {
  const last = keys.at(-1) ?? ''
  const parent = keys.at(-2) ?? ''
  if (/^ref$|Ref$/.test(last)) return 'must be a reference: env:NAME, file:PATH or kafka:ID, never the secret itself'
  if (last === 'url' || last === 'tokenUrl') return 'must be an absolute http(s) URL'
  if (parent === 'types') return "must be a type like order.created, a prefix like order.*, or '*'"
  if (parent === 'headers') return 'must be visible ASCII without line breaks'
  if (last === 'id' || last === 'tenant')
    return "use letters, digits, '.', '_', ':' and '-', at most 100, first one a letter or digit"
  if (last === 'name') return 'use letters, digits and -'
  if (last === 'nonce' || last === 'sealed') return 'must be base64; seal the secret again'
  if (last.startsWith('ht-')) return 'must be as schemas/ says'
  return 'see schemas/'
}

export function fieldName(keys: readonly string[]): string {
  if (keys.length === 0) return 'value'
  return keys.map((key, i) => (/^\d+$/.test(key) ? `[${key}]` : i === 0 ? key : `.${key}`)).join('')
}

function unescapePointer(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~')
}

function valueAt(data: unknown, keys: readonly string[]): unknown {
  let at = data
  for (const key of keys) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, unknown>)[key]
  }
  return at
}

/** People paste secrets where references belong, and put tokens into headers and URLs: none of these is ever shown. */
function printable(value: unknown, keys: readonly string[]): string {
  if (value === undefined) return ''
  const last = keys.at(-1) ?? ''
  if (/^ref$|Ref$/.test(last) || last === 'sealed' || keys.includes('headers')) return '***'
  if ((last === 'url' || last === 'tokenUrl') && typeof value === 'string') return loggableUrl(value)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? `${value.length} items` : 'an object'
  const text = JSON.stringify(value) ?? typeof value
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

function list(values: readonly unknown[]): string {
  const texts = values.filter((value) => value !== null).map((value) => String(value))
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`
}
