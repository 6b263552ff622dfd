import type { EventFacts } from './event-facts.ts'
import { type EventPath, parsePath, stepsFrom } from './event-path.ts'
import { isScalar, negative, operators, type Test } from './filter-operators.ts'
import type { Problem } from './result.ts'
import { suggest } from './suggest.ts'

/**
 * A compiled filter (docs/filters.md): a JSON object whose members must all hold. A member is a path with a scalar
 * (equality) or an object of operators, or `$and`, `$or`, `$nor`, `$not` with filters. No regular expressions: the work
 * of an evaluation is bounded by `maxSteps` whatever the body.
 */
export interface Filter {
  readonly node: FilterNode
  /** Whether any condition looks into the body. */
  readonly needsBody: boolean
}

export type FilterNode =
  | { readonly t: 'and' | 'or'; readonly of: readonly FilterNode[] }
  | { readonly t: 'not'; readonly of: FilterNode }
  | Condition

export interface Condition {
  readonly t: 'test'
  readonly path: EventPath
  readonly operator: string
  readonly operand: unknown
  readonly test: Test
  /** Over the items of an array: all must pass, not one. */
  readonly every: boolean
}

export type Compiled<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Every problem at once, each naming the place, the operator and the remedy. `field`: what the places begin with. */
export function compileFilter(filter: unknown, field = 'filter'): Compiled<Filter> {
  const compiler = new Compiler()
  if (Buffer.byteLength(JSON.stringify(filter) ?? '') > maxBytes)
    return { ok: false, problems: [problem(field, '', `is larger than ${maxBytes} bytes`, 'shorten it')] }
  const node = compiler.group(filter, field, 1)
  if (compiler.problems.length > 0) return { ok: false, problems: compiler.problems.slice(0, 20) }
  return { ok: true, value: { node, needsBody: compiler.needsBody } }
}

/**
 * Does the event pass? `undecided` when the bound on work is reached before that is known: the event is then to be sent,
 * since one too many can be thrown away by its receiver and one too few is lost.
 */
export function evaluate(filter: Filter, facts: EventFacts): boolean | 'undecided' {
  const budget = { left: maxSteps }
  const passed = holds(filter.node, facts, budget)
  return budget.left < 0 ? 'undecided' : passed
}

export function holds(node: FilterNode, facts: EventFacts, budget: { left: number }): boolean {
  switch (node.t) {
    case 'and':
      for (const part of node.of) if (!holds(part, facts, budget)) return false
      return true
    case 'or':
      for (const part of node.of) if (holds(part, facts, budget)) return true
      return false
    case 'not':
      return !holds(node.of, facts, budget)
    case 'test':
      return passes(node, facts, budget)
    default:
      return node satisfies never
  }
}

function passes(condition: Condition, facts: EventFacts, budget: { left: number }): boolean {
  const { path, every } = condition
  if (path.root === 'event') return passesFor(condition, facts.attribute(path.attribute), budget)
  const { keys } = path
  const wild = keys.indexOf(null)
  if (wild < 0) return passesFor(condition, stepsFrom(facts.body, keys, 0, keys.length), budget)
  const items = stepsFrom(facts.body, keys, 0, wild)
  if (!Array.isArray(items) || items.length === 0) return passesFor(condition, undefined, budget)
  for (const item of items) {
    budget.left -= keys.length - wild
    if (budget.left < 0) return every
    if (passesFor(condition, stepsFrom(item, keys, wild + 1, keys.length), budget) !== every) return !every
  }
  return every
}

function passesFor({ operator, test }: Condition, value: unknown, budget: { left: number }): boolean {
  budget.left--
  if (operator === '$contains' && (typeof value === 'string' || Array.isArray(value))) {
    budget.left -= value.length >> 5
    if (budget.left < 0) return false
  }
  return test(value)
}

class Compiler {
  readonly problems: Problem[] = []
  needsBody = false
  #nodes = 0

  /** An object of members that must all hold. */
  group(value: unknown, field: string, depth: number): FilterNode {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return this.#refuse(field, shown(value), 'is no object', 'write {"body.status": "paid"}')
    if (depth > maxDepth) return this.#refuse(field, '', `is nested deeper than ${maxDepth} levels`, 'flatten it')
    const members = Object.entries(value)
    if (members.length === 0) return this.#refuse(field, '', 'has no condition', 'add one, or leave the filter out')
    return all(members.map(([key, operand]) => this.#member(key, operand, `${field}.${key}`, depth)))
  }

  #member(key: string, operand: unknown, field: string, depth: number): FilterNode {
    if (!key.startsWith('$')) return this.#conditions(key, operand, field, depth)
    if (key === '$not') return { t: 'not', of: this.group(operand, field, depth + 1) }
    if (key !== '$and' && key !== '$or' && key !== '$nor') {
      if (operators.has(key))
        return this.#refuse(field, '', `${key} stands where a path belongs`, `write {"body.status": {"${key}": …}}`)
      return this.#refuse(field, '', `${key} is not known here`, meantOf(key, ['$and', '$or', '$nor', '$not']))
    }
    if (!Array.isArray(operand) || operand.length === 0)
      return this.#refuse(field, shown(operand), `${key} wants a list of filters`, 'write [{…}, {…}]')
    const of = operand.map((part: unknown, i) => this.group(part, `${field}[${i}]`, depth + 1))
    if (key === '$and') return all(of)
    return key === '$or' ? { t: 'or', of } : { t: 'not', of: { t: 'or', of } }
  }

  /** What is asked of the value at one path. */
  #conditions(text: string, asked: unknown, field: string, depth: number): FilterNode {
    const path = parsePath(text, { wild: true, item: false })
    if (!path.ok) return this.#refuse(field, '', `the path ${path.reason.split('; ')[0]}`, path.reason.split('; ')[1])
    if (path.value.root === 'body') this.needsBody = true
    if (isScalar(asked)) return this.#condition(path.value, '$eq', asked, field)
    return this.#operators(path.value, asked, field, depth)
  }

  #operators(path: EventPath, asked: unknown, field: string, depth: number): FilterNode {
    if (typeof asked !== 'object' || asked === null || Array.isArray(asked))
      return this.#refuse(field, shown(asked), 'can not be compared with', 'for one of several write {"$in": […]}')
    if (depth > maxDepth) return this.#refuse(field, '', `is nested deeper than ${maxDepth} levels`, 'flatten it')
    const entries = Object.entries(asked)
    if (entries.length === 0) return this.#refuse(field, '', 'has no operator', `use ${known}`)
    return all(
      entries.map(([operator, operand]) => {
        const place = `${field}.${operator}`
        if (operator === '$not') return { t: 'not' as const, of: this.#operators(path, operand, place, depth + 1) }
        return this.#condition(path, operator, operand, place)
      }),
    )
  }

  #condition(path: EventPath, operator: string, operand: unknown, field: string): FilterNode {
    if (++this.#nodes === maxNodes + 1) this.#refuse(field, '', `is condition ${maxNodes + 1}`, `keep ${maxNodes}`)
    const make = operators.get(operator)
    if (make === undefined) {
      if (operator === '$regex' || operator === '$match')
        return this.#refuse(field, '', 'regular expressions are not offered', 'use $prefix, $suffix, $contains or $in')
      const message = operator.startsWith('$') ? `${operator} is no operator` : `${operator} is no operator but a name`
      const remedy = operator.startsWith('$')
        ? meantOf(operator, [...operators.keys(), '$not'])
        : `for a member write the path ${path.text}.${operator}`
      return this.#refuse(field, '', message, remedy)
    }
    const test = make(operand)
    if (typeof test === 'string') return this.#refuse(field, shown(operand), `${operator} ${test}`, 'correct it')
    const every = negative.has(operator) || (operator === '$exists' && operand === false)
    return { t: 'test', path, operator, operand, test, every }
  }

  #refuse(field: string, value: string, message: string, remedy = 'correct it'): FilterNode {
    this.problems.push(problem(field, value, message, remedy))
    return nothing
  }
}

function all(of: readonly FilterNode[]): FilterNode {
  return of.length === 1 ? (of[0] as FilterNode) : { t: 'and', of }
}

function meantOf(name: string, names: readonly string[]): string {
  const meant = suggest(name, names)
  return meant === null ? `use ${names.join(', ')}` : `did you mean ${meant}?`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

function problem(field: string, value: string, message: string, remedy: string): Problem {
  return { field: field.length > 200 ? `${field.slice(0, 197)}…` : field, value, message, remedy }
}

const nothing: FilterNode = { t: 'or', of: [] }
const known = [...operators.keys()].join(', ')
const maxBytes = 16_384
const maxDepth = 8
const maxNodes = 200
/** Conditions, items of arrays and their members looked at in one evaluation, and 32 characters searched each. */
const maxSteps = 10_000
