import { createTextSearch } from './text-search.ts'

/** Scalars of JSON: what conditions compare with. */
export type Scalar = string | number | boolean | null

/** A condition on one value; undefined: the path leads nowhere. */
export type Test = (value: unknown) => boolean

/**
 * Operator → what makes a test of its operand, or says what the operand must be. Numbers compare with numbers, texts with
 * texts (by code units, so RFC 3339 times in one zone compare by time); different kinds are never less or greater.
 */
export const operators: ReadonlyMap<string, (operand: unknown) => Test | string> = new Map([
  ['$eq', (operand) => (isScalar(operand) ? (value) => value === operand : scalar)],
  ['$ne', (operand) => (isScalar(operand) ? (value) => value !== operand : scalar)],
  ['$in', (operand) => member(operand, true)],
  ['$nin', (operand) => member(operand, false)],
  ['$gt', (operand) => ordered(operand, (a, b) => a > b)],
  ['$gte', (operand) => ordered(operand, (a, b) => a >= b)],
  ['$lt', (operand) => ordered(operand, (a, b) => a < b)],
  ['$lte', (operand) => ordered(operand, (a, b) => a <= b)],
  [
    '$exists',
    (operand) =>
      typeof operand === 'boolean' ? (value) => (value !== undefined) === operand : 'must be true or false',
  ],
  ['$prefix', (operand) => textTest(operand, (value, text) => value.startsWith(text))],
  ['$suffix', (operand) => textTest(operand, (value, text) => value.endsWith(text))],
  [
    '$contains',
    (operand) => {
      if (!isScalar(operand)) return scalar
      const within = typeof operand === 'string' ? createTextSearch(operand) : () => false
      return (value) => (Array.isArray(value) ? value.includes(operand) : typeof value === 'string' && within(value))
    },
  ],
])

/** True where no value passes means true: over the items of an array they must hold for every one. */
export const negative: ReadonlySet<string> = new Set(['$ne', '$nin'])

export function isScalar(value: unknown): value is Scalar {
  return value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)
}

function member(operand: unknown, wanted: boolean): Test | string {
  if (!Array.isArray(operand) || operand.length === 0 || !operand.every(isScalar))
    return 'must be a list of texts, numbers, true, false or null'
  if (operand.length > maxListed) return `must list at most ${maxListed} values`
  const values = new Set<unknown>(operand)
  return (value) => values.has(value) === wanted
}

function ordered(operand: unknown, holds: (a: number | string, b: number | string) => boolean): Test | string {
  if (typeof operand !== 'number' && typeof operand !== 'string') return 'must be a number or a text'
  return (value) => typeof value === typeof operand && holds(value as number | string, operand)
}

function textTest(operand: unknown, holds: (value: string, text: string) => boolean): Test | string {
  if (typeof operand !== 'string' || operand === '') return 'must be a text that is not empty'
  return (value) => typeof value === 'string' && holds(value, operand)
}

const maxListed = 1_000
const scalar = 'must be a text, a number, true, false or null'
